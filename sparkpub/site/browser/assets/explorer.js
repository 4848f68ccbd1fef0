// All runs of all campaigns: search, filter, sort, choose columns and axes. The address holds the whole view.
// The page has the first rows; this comes when a reader asks for more.
import {connect, remember} from './filters.js';
import {json, make, number} from './page.js';

const FIELDS = ['campaign', 'model', 'environment', 'workload', 'iteration', 'state'];
const WIDE = ['campaign', 'model', 'workload', 'flags'];
const FOUND_IN = ['run', 'cell', 'campaign', 'flags'];

const order = (a, b) =>
  a === b ? 0 : a === undefined || a === null ? 1 : b === undefined || b === null ? -1 : a > b ? 1 : -1;

class Explorer {
  constructor(element, {rows, titles, metrics, columns, root, chart}) {
    Object.assign(this, {element, rows, titles, root, chart, standard: {columns}});
    this.metrics = new Map(metrics.map((metric) => [metric.name, metric]));
    this.form = element.querySelector('form.sp-filters');
    this.table = element.querySelector('table[data-sp-own]');
    // Rows that are laid out before a reader asks for all: each choice lays them out again.
    this.most = this.table.tBodies[0].rows.length;
    this.read();
  }

  /** What the address asks for. What a reader changed before this script came stays. */
  read() {
    const query = new URLSearchParams(location.search);
    this.form.elements.find.value ||= query.get('find') ?? '';
    this.sort = query.get('sort') ?? '';
    for (const name of ['x', 'y']) {
      const select = this.element.querySelector(`select[name=${name}]`);
      this.standard[name] = select.querySelector('[selected]').value;
      if (select.value === this.standard[name] && this.metrics.has(query.get(name))) select.value = query.get(name);
      this[name] = select.value;
    }
    this.columns = query.getAll('columns').filter((name) => this.metrics.has(name));
    if (!this.columns.length) this.columns = this.standard.columns;
  }

  write() {
    const one = (value) => (value ? [value] : []);
    remember({
      find: one(this.form.elements.find.value),
      sort: one(this.sort),
      x: one(this.x !== this.standard.x && this.x),
      y: one(this.y !== this.standard.y && this.y),
      columns: this.columns.join() === this.standard.columns.join() ? [] : this.columns,
    });
  }

  // ---- Which rows ----

  passes(read) {
    const text = FOUND_IN.map(read).join(' ').toLowerCase();
    return this.pass(read) && this.words.every((word) => text.includes(word));
  }

  visible() {
    const rows = this.rows.filter((row) => this.passes((name) => row[name]));
    const name = this.sort.replace(/^-/, '');
    if (name) rows.sort((a, b) => order(a[name], b[name]));
    return this.sort.startsWith('-') ? rows.reverse() : rows;
  }

  // ---- What is shown ----

  show() {
    this.words = this.form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.visible();
    const laid = rows.slice(0, this.all ? undefined : this.most);
    this.lay(laid);
    const more = this.button('more');
    more.hidden = laid.length === rows.length;
    more.textContent = `Show all ${number(rows.length, 0)}`;
    this.element.querySelector('.sp-says').textContent = `Each point is a run: ${this.label(this.x)} across, ${this.label(this.y)} up.`;
    this.form.querySelector('output').textContent = `${number(rows.length, 0)} of ${number(this.rows.length, 0)} runs`;
    this.form.classList.toggle('sp-active', rows.length < this.rows.length || Boolean(this.sort));
    this.live?.filter((read) => this.passes(read));
    this.write();
  }

  lay(rows) {
    const {name, value} = document.activeElement;
    const columns = [...FIELDS, ...this.columns, 'flags'];
    this.table.tBodies[0].replaceWith(make('tbody', {}, ...rows.map((row) => this.row(row, columns))));
    this.table.tHead.rows[0].replaceChildren(...['run', ...columns].map((column) => this.header(column)));
    // Who sorted by the keyboard goes on from there.
    if (name === 'sort') this.button('sort', value)?.focus();
  }

  label(name) {
    const metric = this.metrics.get(name);
    if (metric) return metric.unit ? `${metric.label} (${metric.unit})` : metric.label;
    return name === 'workload' ? 'Load' : name[0].toUpperCase() + name.slice(1);
  }

  header(name) {
    const cell = make('th', {scope: 'col'}, make('button', {type: 'button', name: 'sort', value: name, textContent: this.label(name)}));
    if (this.sort.replace(/^-/, '') === name) {
      cell.setAttribute('aria-sort', this.sort.startsWith('-') ? 'descending' : 'ascending');
    }
    return cell;
  }

  row(row, columns) {
    const link = make('a', {href: this.root + row.href, textContent: row.started?.replace('T', ' ') ?? row.run});
    const cells = columns.map((name) => {
      const metric = this.metrics.get(name);
      const value = name === 'campaign' ? this.titles[row.campaign] : row[name];
      if (metric && value === undefined) {
        return make('td', {}, make('span', {className: 'sp-none', textContent: 'not available'}));
      }
      const cell = make('td', {textContent: metric ? number(value, metric.decimals) : value});
      if (WIDE.includes(name)) cell.className = 'sp-wide-cell';
      if (metric) cell.dataset.value = value;
      return cell;
    });
    return make('tr', {}, make('th', {scope: 'row'}, link), ...cells);
  }

  // ---- Controls ----

  button(name, value) {
    const having = value === undefined ? '' : `[value="${value}"]`;
    return this.element.querySelector(`button[name=${name}]${having}`);
  }

  connect() {
    const boxes = [...this.metrics.values()].map(({name, label}) => {
      const box = make('input', {type: 'checkbox', name: 'column', value: name, checked: this.columns.includes(name)});
      return make('label', {}, box, ` ${label}`);
    });
    this.element.querySelector('.sp-columns').append(...boxes);
    this.form.addEventListener('reset', () => (this.sort = ''));
    connect(this.form, (pass) => {
      this.pass = pass;
      this.show();
    });
    this.form.elements.find.addEventListener('input', () => this.show());
    this.element.addEventListener('change', ({target}) => this.change(target));
    this.element.addEventListener('click', ({target}) => {
      const button = target.closest('button');
      if (button) this.press(button);
    });
    this.chart?.live.then((live) => this.attach(live));
    if (this.x !== this.standard.x || this.y !== this.standard.y) this.chart?.start();
  }

  /** What was ticked or chosen outside of the form. */
  change({name, value}) {
    if (name === 'column') {
      this.columns = [...this.element.querySelectorAll('[name=column]:checked')].map((box) => box.value);
    } else if (name === 'x' || name === 'y') {
      this[name] = value;
      this.chart?.start();
      this.live?.made.signal(`${name}field`, value).runAsync();
    } else {
      return;
    }
    this.show();
  }

  press({name, value}) {
    if (name === 'sort') this.sort = this.sort === value ? `-${value}` : value;
    else if (name === 'more') this.all = true;
    else return;
    this.show();
  }

  // ---- The chart ----

  attach(live) {
    this.live = live;
    const {made} = live;
    const place = made.container();
    place.style.aspectRatio = 'auto';
    const ready = made.width(place.clientWidth).signal('xfield', this.x).signal('yfield', this.y).runAsync();
    ready.then(() => this.show());
  }
}

export async function start(element, charts) {
  const settings = JSON.parse(element.dataset.spExplorer);
  // Whole, since the theme may read a link again when the address has already moved on.
  const root = new URL(element.dataset.spRoot, location).href;
  const rows = await json(root + settings.rows);
  const chart = charts.find((one) => element.contains(one.element));
  new Explorer(element, {...settings, rows, root, chart}).connect();
}
