// Any two cells, runs or campaigns side by side: the address says which. Means and verdicts are those of the build.
import {head, json, make, number} from './page.js';

const cellOf = (row) => [row.model, row.environment, row.workload].join('/');
const signed = (value, digits) => {
  const rounded = Number(value.toFixed(digits)) || 0;
  return (rounded > 0 ? '+' : '') + number(rounded, digits);
};

const decided = ({known}) => known?.verdict === 'higher' || known?.verdict === 'lower';

/** A cell for readers: `7B · Docker · 8 users, 512 in, 128 out`. */
const inWords = (row, names) =>
  ['model', 'environment', 'workload'].map((axis) => names[row.campaign]?.[axis]?.[row[axis]] ?? row[axis]).join(' · ');

/** The sides that there are: id to label, group and runs. */
function sides(rows, names) {
  const found = new Map();
  const add = (id, label, group, row) => {
    if (!found.has(id)) found.set(id, {id, label, group, rows: []});
    if (row.state === 'counted' || group === 'Runs') found.get(id).rows.push(row);
  };
  for (const row of rows) {
    const title = names[row.campaign]?.campaign?.[row.campaign] ?? row.campaign;
    add(`campaign:${row.campaign}`, title, 'Campaigns', row);
    add(`cell:${row.campaign}/${cellOf(row)}`, `${title}: ${inWords(row, names)}`, 'Cells', row);
    add(`run:${row.run}`, `${inWords(row, names)}, ${row.started?.replace('T', ' ') ?? row.run}`, 'Runs', row);
  }
  return found;
}

class Compare {
  constructor(element, rows, means, comparisons, {metrics, names}) {
    Object.assign(this, {element, metrics, sides: sides(rows, names)});
    this.called = new Map(rows.map((row) => [cellOf(row), inWords(row, names)]));
    const cell = (row, environment) => cellOf({...row, environment});
    this.means = new Map(means.map((row) => [[row.campaign, cellOf(row), row.metric].join('\n'), row]));
    this.comparisons = new Map(
      comparisons.map((row) => [[row.campaign, cell(row, row.baseline), cell(row, row.candidate), row.metric].join('\n'), row]),
    );
    this.form = element.querySelector('form');
    this.table = element.querySelector('table');
    const query = new URLSearchParams(location.search);
    const cells = [...this.sides.values()].filter(({group}) => group === 'Cells');
    const standard = {a: cells[0]?.id, b: cells[1]?.id};
    for (const name of ['a', 'b']) {
      const select = this.form.elements[name];
      for (const group of ['Cells', 'Campaigns', 'Runs']) {
        const members = [...this.sides.values()].filter((side) => side.group === group);
        select.append(make('optgroup', {label: group}, ...members.map(({id, label}) => make('option', {value: id, textContent: label}))));
      }
      select.value = this.sides.has(query.get(name)) ? query.get(name) : standard[name];
    }
    this.form.elements.real.checked = query.get('real') === '1';
    this.form.addEventListener('change', () => this.show());
    this.form.addEventListener('submit', (event) => event.preventDefault());
    this.form.querySelector('[name=swap]').addEventListener('click', () => {
      const {a, b} = this.form.elements;
      [a.value, b.value] = [b.value, a.value];
      this.show();
    });
  }

  /** The cells of a side, by name: of a campaign all that have runs, of anything else the one there is. */
  cells(side) {
    if (side.group === 'Campaigns') return new Set(side.rows.map(cellOf));
    return new Set(side.rows.slice(0, 1).map(cellOf));
  }

  /** Names of the cells to compare, and for each the cell of A and of B. */
  pairs(a, b) {
    const [ours, theirs] = [this.cells(a), this.cells(b)];
    if (a.group !== 'Campaigns' && b.group !== 'Campaigns') return [['', [...ours][0], [...theirs][0]]];
    return [...ours].filter((name) => theirs.has(name)).map((name) => [name, name, name]);
  }

  /** The value of a side: of a run as recorded, of a cell the mean that the build has published. */
  value(side, cell, metric) {
    if (side.group === 'Runs') {
      const value = side.rows[0]?.[metric.name];
      return typeof value === 'number' ? {value, n: 1} : null;
    }
    const found = this.means.get([side.rows[0]?.campaign, cell, metric.name].join('\n'));
    return found ? {value: found.mean, n: found.n} : null;
  }

  /** What the build has published of A as the baseline and B as the candidate. */
  comparison(a, cellA, b, cellB, metric) {
    if (a.group === 'Runs' || b.group === 'Runs' || a.rows[0]?.campaign !== b.rows[0]?.campaign) return null;
    return this.comparisons.get([a.rows[0]?.campaign, cellA, cellB, metric.name].join('\n')) ?? null;
  }

  rows(a, b) {
    const found = [];
    for (const [name, cellA, cellB] of this.pairs(a, b)) {
      for (const metric of this.metrics) {
        const known = this.comparison(a, cellA, b, cellB, metric);
        // Means of the runs that were compared: a round without its partner is in the cell, and not in the comparison.
        const sides = known
          ? [{value: known.mean_baseline, n: known.n_baseline}, {value: known.mean_candidate, n: known.n_candidate}]
          : [this.value(a, cellA, metric), this.value(b, cellB, metric)];
        if (!sides[0] || !sides[1]) continue;
        const turned = this.comparison(b, cellB, a, cellA, metric);
        found.push({cell: name, metric, sides, known, turned});
      }
    }
    return found;
  }

  why({known, turned}) {
    if (known) return known.why;
    if (turned) return 'Compared the other way round: swap A and B.';
    return 'Not compared when the site was built; no verdict.';
  }

  line(row) {
    const {metric, sides, known} = row;
    const digits = metric.decimals;
    const verdict = known?.verdict ?? 'none';
    const value = (index) =>
      make('td', {className: 'sp-num'}, make('strong', {textContent: number(sides[index].value, digits)}), make('small', {textContent: `n = ${sides[index].n}`}));
    const share = known && known.percent !== null ? `${signed(known.percent, 2)} %` : '';
    const shares = known?.interval_percent ? `${known.interval_percent.map((end) => signed(end, 1)).join(' to ')} %` : '';
    const word = known
      ? make('span', {className: `sp-verdict sp-${verdict}`, textContent: verdict})
      : make('span', {className: 'sp-none', textContent: 'not compared'});
    return make(
      'tr',
      {className: decided(row) ? '' : 'sp-quiet'},
      make('th', {scope: 'row', textContent: [this.called.get(row.cell), metric.label].filter(Boolean).join(': ')}),
      make('td', {textContent: metric.unit}),
      value(0),
      value(1),
      make('td', {className: 'sp-num', textContent: known ? signed(known.difference, digits) : ''}),
      make('td', {className: 'sp-num', textContent: known && known.percent === null ? 'no true zero' : share}),
      make('td', {className: 'sp-num', textContent: shares}),
      make('td', {}, word),
      make('td', {className: 'sp-wide-cell', textContent: this.why(row)}),
    );
  }

  show() {
    const {a, b, real} = this.form.elements;
    const [one, two] = [this.sides.get(a.value), this.sides.get(b.value)];
    const all = this.rows(one, two);
    const rows = all.filter((row) => !real.checked || decided(row));
    this.table.replaceChildren(
      make('caption', {textContent: `A: ${one.label}. B: ${two.label}.`}),
      head('Metric', 'Unit', 'A', 'B', 'B − A', 'In % of A', 'Deciding interval', 'Verdict', 'Why'),
      make('tbody', {}, ...rows.map((row) => this.line(row))),
    );
    const common = this.pairs(one, two).length ? 'metric' : 'cell';
    const compared = all.filter(({known}) => known).length;
    const said = all.length
      ? [real.checked ? `${rows.length} of ${all.length} metrics` : `${all.length} metrics`, compared < all.length && `${compared} with a verdict`]
          .filter(Boolean)
          .join(', ')
      : `The two have no ${common} in common.`;
    this.form.querySelector('output').textContent = said;
    this.table.parentElement.hidden = !rows.length;
    const url = new URL(location.href);
    url.search = new URLSearchParams({a: a.value, b: b.value, ...(real.checked ? {real: 1} : {})});
    history.replaceState(history.state, '', url);
  }
}

export async function start(element) {
  const settings = JSON.parse(element.dataset.spCompare);
  const root = element.dataset.spRoot;
  const addresses = [settings.rows, settings.names, settings.cells, settings.comparisons];
  const [rows, names, means, comparisons] = await Promise.all(addresses.map((address) => json(root + address)));
  const page = new Compare(element, rows, means, comparisons, {...settings, names});
  page.show();
  document.querySelector('[data-sp-static]')?.remove();
  element.hidden = false;
}
