// Two or three published speeds side by side: model, then format and engine, then load. The address says which.
import {remember} from './filters.js';
import {head, json, make, number} from './sparkpub.js';

const STEPS = ['model', 'recipe', 'load'];
const FIGURES = {
  total: 'All users (tok/s)',
  each: 'Each user (tok/s)',
  ttft: 'First token (ms)',
  prompt: 'Prompt (tok/s)',
};
const NONE = '–';

/** Offer what there is at each step, keeping the reader's choices as far as they exist, else those of the first side,
 * whose load holds for all until a reader chooses another; returns the row that is chosen. */
function narrow(side, rows, wanted, first, isOwn) {
  let left = rows;
  for (const step of STEPS) {
    const select = side.elements[step];
    const texts = [...new Set(left.map((row) => row[step]))];
    if (step === 'model') texts.sort((a, b) => a.localeCompare(b));
    if (step === 'model' && side.name === 'optional') texts.unshift(NONE);
    const chosen = wanted?.[step] ?? select.value;
    select.replaceChildren(...texts.map((text) => make('option', {value: text}, text)));
    const preferred = step === 'model' ? [chosen] : [chosen, first.elements[step].value];
    if (step === 'load' && !isOwn) preferred.reverse();
    select.value = [...preferred, texts[0]].find((text) => texts.includes(text)) ?? '';
    left = left.filter((row) => row[step] === select.value);
  }
  return left[0];
}

/** A difference for a reader, with its sign. */
function signed(value, decimals) {
  const text = number(value, decimals);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

function cell(name, row, first) {
  const value = row[name];
  if (value === null) return make('td', {}, make('span', {className: 'sp-none'}, 'not known'));
  const decimals = Math.abs(first[name] ?? value) < 100 ? 1 : 0;
  const place = make('td', {}, make('strong', {}, number(value, decimals)));
  const change = value - first[name];
  if (row === first || !first[name]) return place;
  place.append(make('small', {}, `${signed(change, decimals)} (${signed((100 * change) / first[name], 1)} %)`));
  return place;
}

/** The rows side by side, each with its difference from the first. */
export function table(rows, root) {
  const isOne = (name) => new Set(rows.map((row) => row[name])).size === 1;
  const heads = head('Figure', ...rows.map((row) => row.model));
  for (const [index, {model, href, recipe, load}] of rows.entries()) {
    const name = href ? make('a', {href: root + href}, model) : model;
    heads.rows[0].cells[index + 1].replaceChildren(name, make('small', {}, isOne('load') ? recipe : `${recipe}; ${load}`));
  }
  const line = (name, cells) => make('tr', {}, make('th', {scope: 'row'}, name), ...cells);
  // Where requests arrive at a rate, throughput follows the rate, so that only how long they wait is compared.
  const arrive = rows.some((row) => row.rate !== null);
  const isAlone = rows.every((row) => row.each === row.total);
  const lines = Object.keys(FIGURES)
    .filter((name) => rows.some((row) => row[name] !== null) && (!arrive || name === 'ttft'))
    // One user gets all there is.
    .filter((name) => name !== 'each' || !isAlone)
    .map((name) => line(isAlone && name === 'total' ? 'One user (tok/s)' : FIGURES[name], rows.map((row) => cell(name, row, rows[0]))));
  lines.push(line('Runs', rows.map((row) => make('td', {}, row.runs))));
  const alone = rows.filter((row) => row.runs < 2).length;
  const runs = alone === rows.length ? 'One run each' : 'A single run on one side';
  const verdict = alone ? `${runs}: no verdict.` : isOne('campaign') ? 'Their campaign has the verdicts.' : 'Different campaigns: no verdict.';
  const other = isOne('load') ? '' : ' The loads differ, and with them the work.';
  const why = arrive ? ' Requests arrive at a rate, which throughput follows: compare how long they wait.' : '';
  const caption = make('caption', {}, `Differences are from the first. ${verdict}${other}${why}`);
  return make('table', {className: 'sp-table sp-compared'}, caption, heads, make('tbody', {}, ...lines));
}

export async function start(form) {
  const rows = await json(form.dataset.spCompare);
  const place = document.querySelector('[data-sp-result]');
  const sides = [...form.querySelectorAll('fieldset')];
  const query = new URLSearchParams(location.search).getAll('of');
  const asked = query.map((id) => rows.find((row) => row.id === id));
  // What nobody chose is the first model in another format, so that the page begins with a difference.
  const one = asked[0] ?? rows.find((row) => row.rate === null) ?? rows[0];
  const other = rows.find((row) => row.model === one.model && row.load === one.load && row !== one);
  const wanted = [one, asked[1] ?? other, asked[2]];
  const own = new Set(sides.filter((side, index) => !index || (asked[index] && asked[index].load !== one.load)));
  const show = (first) => {
    const chosen = sides.map((side, index) => narrow(side, rows, first ? wanted[index] : null, sides[0], own.has(side))).filter(Boolean);
    place.replaceChildren(table(chosen, form.dataset.spRoot));
    if (!first) remember({of: chosen.map(({id}) => id)});
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', ({target}) => {
    if (target.name === 'load') own.add(target.closest('fieldset'));
    show(false);
  });
  show(true);
}
