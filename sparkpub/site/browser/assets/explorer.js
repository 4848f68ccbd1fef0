// All runs of all campaigns: the form holds the whole view (search, filters, order, columns, axes), and the address what
// the form holds. The page has the first rows; this comes when a reader asks for more.
import {connect} from './filters.js';
import {json, make, number, sorted} from './sparkpub.js';

const WIDE = ['campaign', 'model', 'workload', 'flags'];
const FOUND_IN = ['run', 'cell', 'campaign', 'flags'];

export async function start(element, charts) {
  // Whole, since the theme may read a link again when the address has already moved on.
  const root = new URL(element.dataset.spRoot, location).href;
  const {rows: all, titles, decimals} = await json(root + element.dataset.spExplorer);
  const form = element.querySelector('form');
  const table = element.querySelector('table[data-sp-own]');
  const more = element.querySelector('button[name=more]');
  const heads = table.tHead.rows[0];
  const {sort, x, y} = form.elements;
  const chart = charts.find((one) => element.contains(one.element));
  let live;
  // Rows that are laid out before a reader asks for all: each choice lays them out again.
  let most = table.tBodies[0].rows.length;

  const standard = [...heads.cells].map((head) => head.firstChild.value);
  const labels = Object.fromEntries([...heads.querySelectorAll('button'), ...x.options].map((one) => [one.value, one.textContent]));
  const box = (name, value, label) => make('label', {}, make('input', {type: 'checkbox', name, value}), label);
  const others = [...x.options].filter(({value}) => !standard.includes(value));
  form.querySelector('.sp-columns').append(...others.map(({value}) => box('columns', value, labels[value])));
  const called = (name, row) => (name === 'campaign' ? titles[row.campaign] : row[name]);
  // Of fields with many values the page has the name alone.
  for (const place of form.querySelectorAll('[data-sp-field]')) {
    const name = place.dataset.spField;
    const labelled = new Map(all.map((row) => [row[name], called(name, row)]));
    place.append(...sorted(labelled, ([, label]) => label.toLowerCase()).map(([value, label]) => box(name, value, label)));
  }

  const head = (name) =>
    make('th', {scope: 'col'}, make('button', {type: 'button', name: 'sort', value: name, textContent: labels[name]}));

  const cell = (row, name) => {
    const value = called(name, row);
    if (!(name in decimals)) return make('td', {className: WIDE.includes(name) ? 'sp-wide-cell' : ''}, value);
    const missing = make('span', {className: 'sp-none'}, 'not available');
    return make('td', {}, value === undefined ? missing : number(value, decimals[name]));
  };

  const line = (row, [, ...columns]) => {
    const link = make('a', {href: root + row.href}, row.started?.replace('T', ' ') ?? row.run);
    return make('tr', {}, make('th', {scope: 'row'}, link), ...columns.map((name) => cell(row, name)));
  };

  const show = (pass, {find: [text] = [''], columns: added = [], ...axes}) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    // A metric that a reader puts on an axis leaves the runs that have it.
    const fits = (read) => {
      const found = FOUND_IN.map(read).join(' ').toLowerCase();
      const has = [axes.x, axes.y].every((name) => !name || read(name) != null);
      return has && pass(read) && words.every((word) => found.includes(word));
    };
    const down = sort.value.startsWith('-');
    const by = sort.value.slice(down);
    const passing = all.filter((row) => fits((name) => row[name]));
    const ordered = by ? sorted(passing, (row) => row[by], down) : passing;
    const columns = [...standard.slice(0, -1), ...added, standard.at(-1)];
    // Who sorted by the keyboard goes on from a head that stays.
    if (heads.cells.length !== columns.length) heads.replaceChildren(...columns.map(head));
    columns.forEach((name, index) => (heads.cells[index].ariaSort = name === by ? (down ? 'descending' : 'ascending') : null));
    table.tBodies[0].replaceWith(make('tbody', {}, ...ordered.slice(0, most).map((row) => line(row, columns))));
    more.hidden = ordered.length <= most;
    more.textContent = `Show all ${number(ordered.length, 0)}`;
    form.querySelector('output').textContent = `${number(ordered.length, 0)} of ${number(all.length, 0)} runs`;
    element.querySelector('.sp-says').textContent = `Each point is a run: ${labels[x.value]} across, ${labels[y.value]} up.`;
    if (axes.x || axes.y) chart.start();
    live?.made.signal('xfield', x.value).signal('yfield', y.value);
    live?.filter(fits);
  };

  const again = connect(form, show);
  chart.live.then((found) => {
    live = found;
    again();
  });
  element.addEventListener('click', ({target}) => {
    const button = target.closest('button');
    if (button === more) most = Infinity;
    else if (button?.name === 'sort') sort.value = sort.value === button.value ? `-${button.value}` : button.value;
    else return;
    again();
  });
}
