// Two or three published speeds side by side: model, then format and engine, then load. The address says which.
import {remember} from './filters.js';
import {head, json, make, number} from './page.js';

const STEPS = ['model', 'recipe', 'load'];
const FIGURES = {
  total: 'All users (tok/s)',
  each: 'Each user (tok/s)',
  ttft: 'First token (ms)',
  prompt: 'Prompt (tok/s)',
};
// Where requests arrive at a rate, throughput follows the rate, so that only how long they wait is compared.
const OF_ARRIVALS = ['ttft'];
const NONE = '–';

/** A difference for a reader, with its sign. */
export function signed(value, decimals) {
  const text = number(value, decimals);
  return value > 0 && parseFloat(text.replaceAll(',', '')) !== 0 ? `+${text}` : text;
}

/** Offer what there is at each step, keeping the reader's choices as far as they exist, else those of the first side;
 * returns the row that is chosen. */
function narrow(side, rows, wanted, first) {
  let left = rows;
  for (const step of STEPS) {
    const select = side.elements[step];
    const texts = [...new Set(left.map((row) => row[step]))];
    if (step === 'model') texts.sort((a, b) => a.localeCompare(b));
    if (step === 'model' && side.dataset.optional) texts.unshift(NONE);
    const chosen = wanted?.[step] ?? select.value;
    select.replaceChildren(...texts.map((text) => make('option', {value: text, textContent: text})));
    const others = step === 'model' ? [] : [first.elements[step].value];
    select.value = [chosen, ...others, texts[0]].find((text) => texts.includes(text)) ?? '';
    left = left.filter((row) => row[step] === select.value);
  }
  return left[0];
}

const digits = (value) => (Math.abs(value) < 100 ? 1 : 0);

function cell(name, row, first) {
  const value = row[name];
  if (value === null) return make('td', {}, make('span', {className: 'sp-none', textContent: 'not measured'}));
  const place = make('td', {}, make('strong', {textContent: number(value, digits(value))}));
  if (row === first || !first[name]) return place;
  const change = value - first[name];
  const told = `${signed(change, digits(first[name]))} (${signed((100 * change) / first[name], 1)} %)`;
  place.append(make('small', {textContent: told}));
  return place;
}

/** The rows side by side, each with its difference from the first. */
function table(rows, root) {
  const loads = new Set(rows.map((row) => row.load)).size;
  const heads = head('Figure', ...rows.map((row) => row.model));
  for (const [index, row] of rows.entries()) {
    const link = make('a', {href: root + row.href, textContent: row.model});
    const about = loads > 1 ? `${row.recipe}; ${row.load}` : row.recipe;
    heads.rows[0].cells[index + 1].replaceChildren(link, make('small', {textContent: about}));
  }
  const line = (name, cells) => make('tr', {}, make('th', {scope: 'row', textContent: name}), ...cells);
  const arrive = rows.some((row) => row.rate !== null);
  const lines = Object.entries(FIGURES)
    .filter(([name]) => rows.some((row) => row[name] !== null) && (!arrive || OF_ARRIVALS.includes(name)))
    // One user gets all there is.
    .filter(([name]) => name !== 'each' || rows.some((row) => row.each !== row.total))
    .map(([name, label]) => line(label, rows.map((row) => cell(name, row, rows[0]))));
  lines.push(line('Runs', rows.map((row) => make('td', {textContent: row.runs}))));
  const isOne = new Set(rows.map((row) => row.campaign)).size === 1;
  const alone = rows.filter((row) => row.runs < 2).length;
  const runs = alone === rows.length ? 'One run each' : 'A single run on one side';
  const verdict = alone ? `${runs}: no verdict.` : isOne ? 'Their campaign has the verdicts.' : 'Different campaigns: no verdict.';
  const other = loads > 1 ? ' The loads differ, and with them the work.' : '';
  const why = arrive ? ' Requests arrive at a rate, which throughput follows: compare how long they wait.' : '';
  const caption = make('caption', {textContent: `Differences are from the first. ${verdict}${other}${why}`});
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
  sides.at(-1).dataset.optional = 'true';
  const show = (first) => {
    const chosen = sides.map((side, index) => narrow(side, rows, first ? wanted[index] : null, sides[0])).filter(Boolean);
    place.replaceChildren(table(chosen, form.dataset.spRoot));
    if (!first) remember({of: chosen.map(({id}) => id)});
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', () => show(false));
  show(true);
}
