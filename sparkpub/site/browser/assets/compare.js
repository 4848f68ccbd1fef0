// Any two cells, runs or campaigns side by side: the address says which.
import {json, view} from './live.js';
import {compare, judge} from './welch.js';

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const cellOf = (row) => [row.model, row.environment, row.workload].join('/');
const minus = (text) => text.replace('-', '\u2212');
const signed = (value, digits) => {
  const text = (Number(value.toFixed(digits)) || 0).toFixed(digits);
  return minus((Number(text) > 0 ? '+' : '') + text);
};

/** The sides that there are: id to label, group and runs. */
function sides(rows) {
  const found = new Map();
  const add = (id, label, group, row) => {
    if (!found.has(id)) found.set(id, {id, label, group, rows: []});
    if (row.state === 'counted' || group === 'Runs') found.get(id).rows.push(row);
  };
  for (const row of rows) {
    add(`campaign:${row.campaign}`, row.campaign, 'Campaigns', row);
    add(`cell:${row.campaign}/${cellOf(row)}`, `${row.campaign}: ${cellOf(row).replaceAll('/', ' · ')}`, 'Cells', row);
    add(`run:${row.run}`, row.run, 'Runs', row);
  }
  return found;
}

class Compare {
  constructor(element, rows, statistics, {metrics, margins}) {
    Object.assign(this, {element, metrics, margins, statistics, sides: sides(rows)});
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

  /** Pairs of runs to compare: of one cell each, or of every cell that both campaigns have. */
  pairs(a, b) {
    if (a.group !== 'Campaigns' && b.group !== 'Campaigns') return [['', a.rows, b.rows]];
    const names = [...new Set(a.rows.map(cellOf))].filter((name) => b.rows.some((row) => cellOf(row) === name));
    return names.map((name) => [name, ...[a, b].map((side) => side.rows.filter((row) => cellOf(row) === name))]);
  }

  /** What the build has already published of this pair, with its correction over the whole campaign. */
  published(a, b, metric) {
    if (a.group !== 'Cells' || b.group !== 'Cells') return null;
    const [one, two] = [a.rows[0], b.rows[0]];
    if (!one || !two || one.campaign !== two.campaign) return null;
    return this.statistics.comparisons.find(
      (row) => row.campaign === one.campaign && row.metric === metric.name && row.model === one.model && row.model === two.model
        && row.workload === one.workload && row.workload === two.workload && row.baseline === one.environment
        && row.candidate === two.environment,
    );
  }

  rows(a, b) {
    const margin = a.rows[0]?.campaign === b.rows[0]?.campaign ? (this.margins[a.rows[0]?.campaign] ?? 1) : 5;
    const family = [];
    for (const [cell, one, two] of this.pairs(a, b)) {
      for (const metric of this.metrics) {
        const values = [one, two].map((rows) => rows.map((row) => row[metric.name]).filter((value) => typeof value === 'number'));
        if (!values[0].length || !values[1].length) continue;
        const found = compare(...values, {margin, unit: metric.unit});
        family.push({...found, cell, metric, known: this.published(a, b, metric)});
      }
    }
    return judge(family).map((row) =>
      row.known ? {...row, verdict: row.known.verdict, interval: row.known.ci95_difference, why: row.known.why} : row,
    );
  }

  why(row) {
    if (row.why) return row.why;
    if (Math.min(...row.n) < 4) return `n = ${row.n.join(' and ')}: 4 runs on each side are needed to decide.`;
    const text = (p) => (p === null ? 'none' : p < 0.0001 ? '< 0.0001' : p.toPrecision(2));
    return `Adjusted p of a difference ${text(row.p)}, of equivalence ${text(row.equivalence)} (Welch, TOST, Holm over this table).`;
  }

  line(row) {
    const {metric, means, n, difference, percent, interval, verdict} = row;
    const digits = metric.decimals;
    const value = (index) =>
      make('td', {className: 'sp-num'}, make('strong', {textContent: minus(means[index].toFixed(digits))}), make('small', {textContent: `n = ${n[index]}`}));
    const shares = interval && percent !== null ? interval.map((end) => signed((100 * end) / means[0], 1)).join(' to ') + ' %' : '';
    const line = make(
      'tr',
      {className: verdict === 'higher' || verdict === 'lower' ? '' : 'sp-quiet'},
      make('th', {scope: 'row', textContent: [row.cell.replaceAll('/', ' · '), metric.label].filter(Boolean).join(': ')}),
      make('td', {textContent: metric.unit}),
      value(0),
      value(1),
      make('td', {className: 'sp-num', textContent: signed(difference, digits)}),
      make('td', {className: 'sp-num', textContent: percent === null ? 'no true zero' : `${signed(percent, 2)} %`}),
      make('td', {className: 'sp-num', textContent: shares}),
      make('td', {}, make('span', {className: `sp-verdict sp-${verdict}`, textContent: verdict})),
      make('td', {className: 'sp-wide-cell', textContent: this.why(row)}),
    );
    return line;
  }

  show() {
    const {a, b, real} = this.form.elements;
    const [one, two] = [this.sides.get(a.value), this.sides.get(b.value)];
    const all = this.rows(one, two);
    const rows = all.filter(({verdict}) => !real.checked || verdict === 'higher' || verdict === 'lower');
    const heads = ['Metric', 'Unit', 'A', 'B', 'B − A', 'In % of A', '95 % interval', 'Verdict', 'Why'];
    this.table.replaceChildren(
      make('caption', {textContent: `A: ${one.label}. B: ${two.label}.`}),
      make('thead', {}, make('tr', {}, ...heads.map((text) => make('th', {scope: 'col', textContent: text})))),
      make('tbody', {}, ...rows.map((row) => this.line(row))),
    );
    const common = this.pairs(one, two).length ? 'metric' : 'cell';
    const said = all.length ? `${rows.length} of ${all.length} comparisons` : `The two have no ${common} in common.`;
    this.form.querySelector('output').textContent = said;
    this.table.parentElement.hidden = !rows.length;
    const url = new URL(location.href);
    url.search = new URLSearchParams({a: a.value, b: b.value, ...(real.checked ? {real: 1} : {})});
    history.replaceState(history.state, '', url);
    this.overlay(one, two);
  }

  /** The telemetry of one run of each side on one time axis. */
  async overlay(one, two) {
    const card = document.getElementById('overlay');
    const figure = card?.querySelector('.sp-chart');
    const note = this.element.querySelector('.sp-overlay-note');
    const runs = [one, two].map((side) => side.rows.find((row) => row.samples));
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const none = () => {
      note.textContent = 'Telemetry over time: not recorded for both sides, or not published as a series.';
      if (card) card.hidden = true;
    };
    if (!figure || runs.includes(undefined)) return none();
    // A run beyond the pages of full length has its telemetry as a file only.
    const [specification, ...samples] = await Promise.all([
      json(`${figure.dataset.spSpec}${(figure.clientWidth || innerWidth) < 480 ? '.narrow' : ''}.vega.json`),
      ...runs.map((run) => json(this.element.dataset.spRoot + run.samples)),
    ]).catch(() => []);
    if (turn !== this.turn) return undefined;
    if (!specification) return none();
    // A line needs two points.
    const drawn = samples.map((list) => {
      const counts = {};
      for (const {signal, value} of list) if (Number.isFinite(value)) counts[signal] = (counts[signal] ?? 0) + 1;
      return new Set(Object.keys(counts).filter((name) => counts[name] > 1));
    });
    const shared = new Set([...drawn[0]].filter((name) => drawn[1].has(name)));
    if (!shared.size) return none();
    const rows = samples.flatMap((list, index) =>
      list.filter((row) => shared.has(row.signal)).map((row) => ({...row, side: 'AB'[index]})),
    );
    const place = make('div');
    const made = await view(specification, {samples: rows}, place);
    if (turn !== this.turn) return made.finalize();
    this.drawn?.finalize();
    this.drawn = made;
    card.hidden = false;
    figure.replaceChildren(place);
    note.textContent = '';
    card.querySelector('.sp-sample').textContent = `A: ${runs[0].run}. B: ${runs[1].run}.`;
    return undefined;
  }
}

export async function start(element) {
  const settings = JSON.parse(element.dataset.spCompare);
  const root = element.dataset.spRoot;
  const [rows, statistics] = await Promise.all([json(root + settings.rows), json(`${root}data/statistics.json`)]);
  const page = new Compare(element, rows, statistics, settings);
  page.show();
  document.querySelector('[data-sp-static]')?.remove();
  element.hidden = false;
}
