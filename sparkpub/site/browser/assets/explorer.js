// All runs of all campaigns: search, filter, sort, choose columns, brush the chart, select, export. The address holds
// the whole view. The page has the first rows; this comes when a reader asks for more.
import {connect, remember} from './filters.js';
import {json, make, number} from './page.js';

const FIELDS = ['campaign', 'model', 'environment', 'workload', 'iteration', 'state'];
const WIDE = ['model', 'workload', 'flags'];
const FOUND_IN = ['run', 'cell', 'campaign', 'flags', 'status'];
const words = (read) => FOUND_IN.map(read).join(' ').toLowerCase();

const order = (a, b) =>
  a === b ? 0 : a === undefined || a === null ? 1 : b === undefined || b === null ? -1 : a > b ? 1 : -1;

/** Hand text to the reader as a file. */
function save(name, content, type) {
  const blob = new Blob([content], {type});
  const link = Object.assign(document.createElement('a'), {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
const plain = (value) => value.replace(/^([=+@\t]|-(?!\d))/, "'$1");
const quoted = (value) => (/[",\n]/.test(value) ? `"${plain(value).replaceAll('"', '""')}"` : plain(value));

/** Rows (objects) as CSV with a header; a value that is no text or number is left out. */
function csv(rows) {
  const isValue = (value) => ['string', 'number', 'boolean'].includes(typeof value);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => isValue(row[name]))))];
  const line = (values) => values.map((value) => quoted(String(value ?? ''))).join(',');
  return `${[names, ...rows.map((row) => names.map((name) => row[name]))].map(line).join('\n')}\n`;
}

class Explorer {
  constructor(element, {rows, names, metrics, columns, root, chart}) {
    Object.assign(this, {element, rows, names, root, chart, standard: {columns}});
    this.metrics = new Map(metrics.map((metric) => [metric.name, metric]));
    this.form = element.querySelector('form.sp-filters');
    this.table = element.querySelector('table[data-sp-own]');
    // Rows that are laid out before a reader asks for all: each choice lays them out again.
    this.most = this.table.tBodies[0].rows.length;
    this.drawn = this.state('', columns, rows.slice(0, this.most));
    this.read();
  }

  /** What the address asks for. What a reader changed before this script came stays. */
  read() {
    const query = new URLSearchParams(location.search);
    const list = (name) => query.get(name)?.split(',').filter(Boolean) ?? [];
    this.form.elements.find.value ||= query.get('find') ?? '';
    this.sort = query.get('sort') ?? '';
    this.brush = list('brush').map(Number);
    if (this.brush.length !== 4 || this.brush.some(Number.isNaN)) this.brush = null;
    for (const name of ['x', 'y']) {
      const select = this.element.querySelector(`select[name=${name}]`);
      this.standard[name] = select.querySelector('[selected]').value;
      if (select.value === this.standard[name] && this.metrics.has(query.get(name))) select.value = query.get(name);
      this[name] = select.value;
    }
    this.columns = list('columns').filter((name) => this.metrics.has(name));
    if (!this.columns.length) this.columns = this.standard.columns;
    const ticked = [...this.table.querySelectorAll('[name=select]:checked')].map(({value}) => value);
    const known = new Set(this.rows.map(({run}) => run));
    this.selected = new Set([...list('select'), ...ticked].filter((run) => known.has(run)));
  }

  write() {
    const one = (value) => (value ? [value] : []);
    remember({
      find: one(this.form.elements.find.value),
      sort: one(this.sort),
      brush: this.brush?.map((value) => value.toPrecision(6)) ?? [],
      x: one(this.x !== this.standard.x && this.x),
      y: one(this.y !== this.standard.y && this.y),
      columns: this.columns.join() === this.standard.columns.join() ? [] : this.columns,
      select: [...this.selected],
    });
  }

  // ---- Which rows ----

  passes(read) {
    if (!this.pass(read)) return false;
    if (!this.words.length) return true;
    const text = words(read);
    return this.words.every((word) => text.includes(word));
  }

  brushed(row) {
    if (!this.brush) return true;
    const [left, right, low, high] = this.brush;
    return row[this.x] >= left && row[this.x] <= right && row[this.y] >= low && row[this.y] <= high;
  }

  visible() {
    const rows = this.rows.filter((row) => this.passes((name) => row[name]) && this.brushed(row));
    const name = this.sort.replace(/^-/, '');
    if (name) rows.sort((a, b) => order(a[name], b[name]));
    return this.sort.startsWith('-') ? rows.reverse() : rows;
  }

  // ---- What is shown ----

  show() {
    this.words = this.form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.visible();
    this.shown = rows;
    this.fill(rows);
    this.element.querySelector('.sp-says').textContent = `Each point is a run: ${this.label(this.x)} across, ${this.label(this.y)} up.`;
    const brush = this.brush ? ', selected in the chart' : '';
    this.form.querySelector('output').textContent = `${number(rows.length, 0)} of ${number(this.rows.length, 0)} runs${brush}`;
    this.button('clear').hidden = !this.brush;
    this.form.classList.toggle('sp-active', rows.length < this.rows.length || this.selected.size > 0 || Boolean(this.sort));
    this.element.querySelector('.sp-selection').textContent = this.selected.size ? `${this.selected.size} selected` : '';
    const compare = this.element.querySelector('a.sp-compare');
    compare.hidden = this.selected.size !== 2;
    const [a, b] = [...this.selected].map((run) => `run:${run}`);
    compare.href = `${this.root}compare/?${new URLSearchParams({a, b})}`;
    this.live?.filter((read) => this.passes(read));
    this.write();
  }

  state(sort, columns, rows) {
    return [sort, ...columns, ...rows.map(({run}) => run)].join('\n');
  }

  /** The rows of the table, and what is selected of them; rows that stand there already stay. */
  fill(rows) {
    const laid = rows.slice(0, this.all ? undefined : this.most);
    const state = this.state(this.sort, this.columns, laid);
    if (state !== this.drawn) this.lay(laid);
    this.drawn = state;
    for (const box of this.table.querySelectorAll('[name=select]')) box.checked = this.selected.has(box.value);
    const more = this.button('more');
    more.hidden = laid.length === rows.length;
    more.textContent = `Show all ${number(rows.length, 0)}`;
  }

  lay(rows) {
    const {name, value} = document.activeElement;
    const columns = [...FIELDS, ...this.columns, 'flags'];
    const body = make('tbody', {}, ...rows.map((row) => this.row(row, columns)));
    const heads = ['run', ...columns].map((column) => this.header(column));
    const select = this.table.tHead.rows[0].cells[0];
    this.table.tHead.rows[0].replaceChildren(select, ...heads);
    this.table.tBodies[0].replaceWith(body);
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
    const box = make('input', {type: 'checkbox', name: 'select', value: row.run, ariaLabel: `Select ${row.run}`});
    const link = make('a', {href: this.root + row.href, textContent: row.started?.replace('T', ' ') ?? row.run});
    const cells = columns.map((name) => {
      const metric = this.metrics.get(name);
      const value = this.names[row.campaign]?.[name]?.[row[name]] ?? row[name];
      if (value === undefined || value === null || value === '') {
        return make('td', {}, make('span', {className: 'sp-none', textContent: metric ? 'not available' : ''}));
      }
      const cell = make('td', {textContent: metric ? number(value, metric.decimals) : value});
      if (WIDE.includes(name)) cell.className = 'sp-wide-cell';
      if (metric) cell.dataset.value = value;
      return cell;
    });
    return make('tr', {}, make('td', {}, box), make('th', {scope: 'row'}, link), ...cells);
  }

  // ---- Controls ----

  button(name, value) {
    const having = value === undefined ? '' : `[value="${value}"]`;
    return this.element.querySelector(`button[name=${name}]${having}`);
  }

  connect() {
    this.menu();
    this.form.addEventListener('reset', () => {
      this.sort = '';
      this.selected.clear();
      this.clearBrush();
    });
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
    if (this.brush || this.x !== this.standard.x || this.y !== this.standard.y) this.chart?.start();
  }

  menu() {
    const boxes = [...this.metrics.values()].map(({name, label}) => {
      const box = make('input', {type: 'checkbox', name: 'column', value: name, checked: this.columns.includes(name)});
      return make('label', {}, box, ` ${label}`);
    });
    this.element.querySelector('.sp-columns').append(...boxes);
  }

  /** What was ticked or chosen outside of the form. */
  change({name, value, checked}) {
    if (name === 'select') {
      this.selected[checked ? 'add' : 'delete'](value);
    } else if (name === 'column') {
      this.columns = [...this.element.querySelectorAll('[name=column]:checked')].map((box) => box.value);
    } else if (name === 'x' || name === 'y') {
      this[name] = value;
      this.clearBrush();
      this.chart?.start();
      this.live?.made.signal(`${name}field`, value).runAsync();
    } else {
      return;
    }
    this.show();
  }

  press({name, value}) {
    const taken = () => (this.selected.size ? this.rows.filter(({run}) => this.selected.has(run)) : this.shown);
    if (name === 'csv') return save('runs.csv', csv(taken()), 'text/csv');
    if (name === 'json') return save('runs.json', `${JSON.stringify(taken(), null, 1)}\n`, 'application/json');
    if (name === 'sort') this.sort = this.sort === value ? `-${value}` : value;
    else if (name === 'clear') this.clearBrush();
    else if (name === 'more') this.all = true;
    else return undefined;
    return this.show();
  }

  // ---- The chart ----

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

  clearBrush() {
    this.brush = null;
    this.live?.made.signal('brush_x', []).signal('brush_y', []).runAsync();
  }
}

export async function start(element, charts) {
  const settings = JSON.parse(element.dataset.spExplorer);
  // Whole, since the theme may read a link again when the address has already moved on.
  const root = new URL(element.dataset.spRoot, location).href;
  const [rows, names] = await Promise.all([json(root + settings.rows), json(root + settings.names)]);
  const chart = charts.find((one) => element.contains(one.element));
  new Explorer(element, {...settings, rows, names, root, chart}).connect();
}
