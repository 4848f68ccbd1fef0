// All runs of all campaigns: search, filter, sort, choose columns, brush the chart, select, export. The address holds
// the whole view.
import {chosen, passes, remember, rememberForm, restore} from './filters.js';
import {csv, save} from './files.js';
import {alive, json, make, number} from './live.js';

// Rows that are laid out before a reader asks for all: each choice lays them out again.
const LIMIT = 25;
const FIELDS = ['campaign', 'model', 'environment', 'workload', 'iteration', 'state'];

const FOUND_IN = ['run', 'cell', 'campaign', 'flags', 'status'];
const LABELS = {workload: 'Load'};
const words = (read) => FOUND_IN.map(read).join(' ').toLowerCase();

const order = (a, b) =>
  a === b ? 0 : a === undefined || a === null ? 1 : b === undefined || b === null ? -1 : a > b ? 1 : -1;

class Explorer {
  constructor(element, rows, {metrics, names}, root) {
    Object.assign(this, {element, rows, names, root});
    this.metrics = new Map(metrics.map((metric) => [metric.name, metric]));
    this.form = element.querySelector('form');
    this.chart = document.querySelector('#explorer .sp-chart');
    this.selected = new Set();
    this.texts = new Map();
    this.read();
  }

  read() {
    const common = [...this.metrics.keys()].filter((name) => this.rows.filter((row) => typeof row[name] === 'number').length * 2 > this.rows.length);
    this.standard = {columns: (common.length ? common : [...this.metrics.keys()]).slice(0, 4).join()};
    const query = new URLSearchParams(location.search);
    const list = (name) => query.get(name)?.split(',').filter(Boolean) ?? [];
    restore(this.form);
    this.form.elements.find.value = query.get('find') ?? '';
    this.sort = query.get('sort') ?? '';
    this.brush = list('brush').map(Number);
    if (this.brush.length !== 4 || this.brush.some(Number.isNaN)) this.brush = null;
    for (const name of ['x', 'y']) {
      const select = document.querySelector(`#explorer-axes [name=${name}]`);
      this.standard[name] = select.querySelector('[selected]').value;
      select.value = this.metrics.has(query.get(name)) ? query.get(name) : this.standard[name];
      this[name] = select.value;
    }
    this.columns = list('columns').filter((name) => this.metrics.has(name));
    if (!this.columns.length) this.columns = this.standard.columns.split(',');
    const known = new Set(this.rows.map((row) => row.run));
    for (const run of list('select')) if (known.has(run)) this.selected.add(run);
    const campaign = location.hash.slice(1);
    const box = [...this.form.querySelectorAll('[name=campaign]')].find(({value}) => value === campaign);
    if (box) box.checked = true;
  }

  write() {
    const one = (value) => (value ? [value] : []);
    rememberForm(this.form);
    remember({
      find: one(this.form.elements.find.value),
      sort: one(this.sort),
      brush: this.brush?.map((value) => value.toPrecision(6)) ?? [],
      x: one(this.x !== this.standard.x && this.x),
      y: one(this.y !== this.standard.y && this.y),
      columns: this.columns.join() === this.standard.columns ? [] : this.columns,
      select: [...this.selected],
    });
  }

  // ---- Which rows ----

  passes(row) {
    if (!this.facets((name) => row[name])) return false;
    if (!this.words.length) return true;
    if (!this.texts.has(row)) this.texts.set(row, words((name) => row[name]));
    const text = this.texts.get(row);
    return this.words.every((word) => text.includes(word));
  }

  brushed(row) {
    const [left, right, low, high] = this.brush;
    return row[this.x] >= left && row[this.x] <= right && row[this.y] >= low && row[this.y] <= high;
  }

  visible() {
    const rows = this.rows.filter((row) => this.passes(row) && (!this.brush || this.brushed(row)));
    const name = this.sort.replace(/^-/, '');
    if (name) rows.sort((a, b) => order(a[name], b[name]));
    return this.sort.startsWith('-') ? rows.reverse() : rows;
  }

  // ---- What is shown ----

  show() {
    const says = this.chart?.closest('figure').querySelector('.sp-says');
    if (says) says.textContent = `Each point is a run: ${this.label(this.x)} across, ${this.label(this.y)} up.`;
    this.facets = passes(chosen(this.form));
    this.words = this.form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.visible();
    this.shown = rows;
    this.table(rows);
    const brush = this.brush ? ', selected in the chart' : '';
    this.form.querySelector('output').textContent = `${rows.length} of ${this.rows.length} runs${brush}`;
    this.form.querySelector('[name=clear]').hidden = !this.brush;
    this.form.classList.toggle('sp-active', rows.length < this.rows.length || this.selected.size > 0 || Boolean(this.sort));
    this.element.querySelector('.sp-selection').textContent = this.selected.size ? `${this.selected.size} selected` : '';
    const compare = this.element.querySelector('a.sp-compare');
    compare.hidden = this.selected.size !== 2;
    const [a, b] = [...this.selected].map((run) => `run:${run}`);
    compare.href = `${this.root}compare/?${new URLSearchParams({a, b})}`;
    this.live?.filter((read) => this.facets(read) && this.matches(read));
    this.write();
  }

  matches(read) {
    const text = words(read);
    return this.words.every((word) => text.includes(word));
  }

  table(rows) {
    const columns = [...FIELDS, ...this.columns, 'flags'];
    const head = make('tr', {}, make('th', {scope: 'col', textContent: 'Select'}), this.header('run', 'Run'));
    head.append(...columns.map((name) => this.header(name, this.label(name))));
    const body = make('tbody', {}, ...rows.slice(0, this.all ? undefined : LIMIT).map((row) => this.row(row, columns)));
    const table = this.element.querySelector('table');
    table.replaceChildren(table.caption ?? make('caption', {textContent: 'Runs'}), make('thead', {}, head), body);
    const more = this.element.querySelector('[name=more]');
    more.hidden = this.all || rows.length <= LIMIT;
    more.textContent = `Show all ${rows.length}`;
  }

  label(name) {
    const metric = this.metrics.get(name);
    if (!metric) return LABELS[name] ?? name[0].toUpperCase() + name.slice(1);
    return metric.unit ? `${metric.label} (${metric.unit})` : metric.label;
  }

  header(name, text) {
    const button = make('button', {type: 'button', textContent: text});
    const cell = make('th', {scope: 'col'}, button);
    if (this.sort.replace(/^-/, '') === name) {
      cell.setAttribute('aria-sort', this.sort.startsWith('-') ? 'descending' : 'ascending');
    }
    button.addEventListener('click', () => {
      this.sort = this.sort === name ? `-${name}` : name;
      this.show();
      [...this.element.querySelectorAll('thead button')].find((other) => other.textContent === text)?.focus();
    });
    return cell;
  }

  row(row, columns) {
    const box = make('input', {type: 'checkbox', checked: this.selected.has(row.run)});
    box.setAttribute('aria-label', `Select ${row.run}`);
    box.addEventListener('change', () => {
      this.selected[box.checked ? 'add' : 'delete'](row.run);
      this.show();
      this.element.querySelector(`[aria-label="Select ${CSS.escape(row.run)}"]`)?.focus();
    });
    const link = make('a', {href: this.root + row.href, textContent: row.started?.replace('T', ' ') ?? row.run});
    const cells = columns.map((name) => {
      const metric = this.metrics.get(name);
      const value = this.names[row.campaign]?.[name]?.[row[name]] ?? row[name];
      if (value === undefined || value === null || value === '') {
        return make('td', {}, make('span', {className: 'sp-none', textContent: metric ? 'not available' : ''}));
      }
      const cell = make('td', {textContent: metric ? number(value, metric.decimals) : value});
      if (['model', 'workload', 'flags'].includes(name)) cell.className = 'sp-wide-cell';
      if (metric) cell.dataset.value = value;
      return cell;
    });
    return make('tr', {}, make('td', {}, box), make('th', {scope: 'row'}, link), ...cells);
  }

  // ---- Controls ----

  connect() {
    const changed = () => this.show();
    this.form.addEventListener('change', changed);
    this.form.elements.find.addEventListener('input', changed);
    this.form.addEventListener('submit', (event) => event.preventDefault());
    this.form.addEventListener('reset', () =>
      setTimeout(() => {
        this.sort = '';
        this.setBrush(null);
        this.selected.clear();
        this.show();
      }),
    );
    this.form.querySelector('[name=clear]').addEventListener('click', () => {
      this.setBrush(null);
      this.show();
    });
    this.element.querySelector('[name=more]').addEventListener('click', () => {
      this.all = true;
      this.show();
    });
    for (const select of document.querySelectorAll('#explorer-axes select')) {
      select.addEventListener('change', () => {
        this[select.name] = select.value;
        this.setBrush(null);
        this.startChart();
        this.live?.made.signal(`${select.name}field`, select.value).runAsync();
        this.show();
      });
    }
    this.menu();
    this.exports();
    this.chart?.addEventListener('sp-live', ({detail}) => this.attach(detail));
    // A reader may have turned to the chart before this script came.
    if (alive.has(this.chart)) this.attach(alive.get(this.chart));
    if (this.brush || this.x !== this.standard.x || this.y !== this.standard.y) this.startChart();
  }

  menu() {
    const menu = this.element.querySelector('.sp-columns');
    const boxes = [...this.metrics.values()].map((metric) => {
      const box = make('input', {type: 'checkbox', value: metric.name, checked: this.columns.includes(metric.name)});
      box.addEventListener('change', () => {
        this.columns = boxes.map(([one]) => one).filter((one) => one.checked).map((one) => one.value);
        this.show();
      });
      return [box, make('label', {}, box, ` ${metric.label}`)];
    });
    menu.append(...boxes.map(([, label]) => label));
  }

  exports() {
    const chosenRows = () => (this.selected.size ? this.rows.filter((row) => this.selected.has(row.run)) : this.shown);
    const actions = {
      csv: () => save('runs.csv', csv(chosenRows()), 'text/csv'),
      json: () => save('runs.json', `${JSON.stringify(chosenRows(), null, 1)}\n`, 'application/json'),
      link: () => navigator.clipboard.writeText(location.href),
    };
    for (const [name, act] of Object.entries(actions)) {
      this.element.querySelector(`[name=${name}]`).addEventListener('click', act);
    }
  }

  // ---- The chart ----

  startChart() {
    this.chart?.dispatchEvent(new Event('pointerenter'));
  }

  attach(live) {
    this.live = live;
    const {made} = live;
    const place = made.container();
    place.style.aspectRatio = 'auto';
    const ready = made.width(place.clientWidth).signal('xfield', this.x).signal('yfield', this.y).runAsync();
    ready.then(() => this.drawBrush()).then(() => this.show());
    let waiting;
    made.addSignalListener('brush', (_, {vx, vy}) => {
      this.brush = vx && vy ? [...vx, ...vy] : null;
      clearTimeout(waiting);
      waiting = setTimeout(() => this.show(), 30);
    });
  }

  /** A brush that the address asked for, at its place in the chart. */
  drawBrush() {
    if (!this.brush) return undefined;
    const [left, right, low, high] = this.brush;
    const {made} = this.live;
    const [x, y] = ['x', 'y'].map((name) => made.scale(name));
    return made.signal('brush_x', [x(left), x(right)]).signal('brush_y', [y(high), y(low)]).runAsync();
  }

  setBrush() {
    this.brush = null;
    if (this.live) this.live.made.signal('brush_x', []).signal('brush_y', []).runAsync();
  }
}

export async function start(element) {
  const settings = JSON.parse(element.dataset.spExplorer);
  // Whole, since the theme may read a link again when the address has already moved on.
  const root = new URL(element.dataset.spRoot, location).href;
  const explorer = new Explorer(element, await json(root + settings.rows), settings, root);
  explorer.connect();
  explorer.show();
  document.querySelector('[data-sp-static]')?.remove();
  element.hidden = false;
  document.getElementById('explorer-axes').hidden = false;
}
