// What every page loads, and what the other programs share. Charts stay drawings until a reader points at, touches,
// focuses or filters one.

/** An element with properties and children. */
export const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

/** The head of a table. */
export const head = (...texts) => make('thead', {}, make('tr', {}, ...texts.map((text) => make('th', {scope: 'col'}, text))));

/** A number for a reader, as the build writes it: `1,508.17`, with a true minus. */
export function number(value, decimals) {
  const rounded = Number(value.toFixed(decimals)) || 0;
  const digits = {minimumFractionDigits: decimals, maximumFractionDigits: decimals};
  return rounded.toLocaleString('en-US', digits).replace('-', '\u2212');
}

/** A line of samples travels as one row, with lists of its `x` and `value`; charts read a row for each. */
const points = ({x, value, ...line}) => (Array.isArray(x) ? x.map((at, i) => ({...line, x: at, value: value[i]})) : [{...line, x, value}]);

const fetched = new Map();

/** JSON by address, fetched once; `#member` picks a list of rows in the document. */
export function json(address) {
  // Whole, since two programs of a page may name one file from different places.
  const [url, member] = new URL(address, location).href.split('#');
  if (!fetched.has(url)) {
    const answer = fetch(url).then((found) => (found.ok ? found.json() : Promise.reject(new Error(url))));
    fetched.set(url, answer);
  }
  return fetched.get(url).then((document) => (member ? document[member].flatMap(points) : document));
}

const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === 'number' ? -1 : 1);

/** Rows in the order of what `read` finds in them; those in which it finds nothing are last either way. */
export const sorted = (rows, read, down) =>
  [...rows]
    .map((row) => [row, read(row) ?? null])
    .sort(([, a], [, b]) => (a === null) - (b === null) || (down ? order(b, a) : order(a, b)))
    .map(([row]) => row);

// ---- What a search found, or an address names, may lie in closed parts, one within the other -----------------------

function reveal() {
  const words = (new URLSearchParams(location.search).get('h') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const holds = ({textContent}) => words.some((word) => textContent.toLowerCase().includes(word));
  const found = [...document.querySelectorAll('.md-content details')].find(holds);
  for (let part of [found, document.getElementById(location.hash.slice(1))]) {
    for (; part; part = part.parentElement) if (part.localName === 'details') part.open = true;
  }
}

// ---- The theme's bars beside code have no name: a reader of landmarks could not tell them apart --------------------

function bars() {
  const plain = () => {
    for (const bar of document.querySelectorAll('.md-code__nav:not([role])')) bar.setAttribute('role', 'none');
  };
  new MutationObserver(plain).observe(document.body, {childList: true, subtree: true});
  plain();
}

// ---- The menu of a phone opens at its top, and not within the section of the page ---------------------------------

function menu({target}) {
  if (target.id !== '__drawer' || !target.checked) return;
  for (const section of document.querySelectorAll('.md-nav--primary .md-nav__toggle:checked')) section.checked = false;
}

// ---- The pages of runs have no program of the theme: dark and light follow the reader's system, or what was chosen ---

function colours() {
  const schemes = [...document.querySelectorAll('input[hidden][data-md-color-media*=":"]')];
  const follow = () => {
    const {dataset} = schemes.findLast((scheme) => matchMedia(scheme.dataset.mdColorMedia).matches) ?? schemes[0];
    for (const name of ['mdColorScheme', 'mdColorPrimary', 'mdColorAccent']) document.body.dataset[name] = dataset[name];
  };
  if (!schemes.length || __md_get('__palette')?.color?.media?.includes(':')) return;
  follow();
  for (const {dataset} of schemes) matchMedia(dataset.mdColorMedia).addEventListener('change', follow);
}

// ---- Charts ----------------------------------------------------------------------------------------------------

function whenSeen(element, act) {
  const watch = (seen, observer) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    act();
  };
  new IntersectionObserver(watch).observe(element);
}

/** A chart: `start` asks for its live view, `live` is there once anybody has. */
function chartOf(element) {
  const link = make('a', {
    className: 'sp-mark',
    href: `#${element.closest('[id]')?.id ?? ''}`,
    ariaLabel: 'Points of this chart: the arrow keys choose a run, Enter opens it',
  });
  element.append(link);
  const chart = {element, pass: () => true};
  chart.live = new Promise((done) => {
    chart.start = () => {
      // A chart that cannot start stays as drawn.
      chart.view ??= import('./live.js').then(({start}) => start(element, link, chart.pass)).then(done).catch(() => null);
    };
  });
  // A pointer may have come before this script: it asks as soon as it moves.
  for (const kind of ['pointerenter', 'pointermove', 'touchstart', 'focusin']) {
    element.addEventListener(kind, chart.start, {once: true, passive: true});
  }
  // A figure that the build did not draw draws itself as it comes into view.
  if (element.closest('[data-sp-now]')) whenSeen(element, chart.start);
  // A finger that lands on a drawing asks; only the link over a chosen mark leads away. The theme expects links of
  // HTML alone, so those of a drawing stay between the reader and the browser.
  for (const kind of ['click', 'mouseover', 'focusin']) {
    element.addEventListener(kind, (event) => {
      if (!event.target.closest('svg a')) return;
      event.stopPropagation();
      if (event.pointerType === 'touch') event.preventDefault();
    });
  }
  return chart;
}

/** A drawing in a file becomes part of the page when it is seen: its points are links, and in WebKit the colours of an
 * image do not follow the palette. */
async function embed(image) {
  const text = await (await fetch(image.src)).text();
  // Its colours come from the page; the page's policy would refuse a style sheet in it.
  const unstyled = text.replace(/<style>[^<]*<\/style>/, '');
  image.replaceWith(new DOMParser().parseFromString(unstyled, 'image/svg+xml').documentElement);
}

// ---- Tables: sort by a click on a header -------------------------------------------------------

const read = (column) => (row) => {
  const cell = row.cells[column];
  const text = cell?.dataset.value ?? cell?.textContent.trim();
  if (!text || cell.querySelector('.sp-none')) return null;
  const value = parseFloat(text.replace('\u2212', '-').replaceAll(',', ''));
  return Number.isNaN(value) ? text.toLowerCase() : value;
};

function sortable(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  heads.forEach((head, column) => {
    const text = head.textContent.trim();
    if (!text) return;
    // A header that leads somewhere keeps its link beside the button.
    const linked = head.querySelector('a');
    const button = make('button', {type: 'button', ariaLabel: linked && `Sort by ${text}`}, ...(linked ? [] : head.childNodes));
    head.append(button);
    button.addEventListener('click', () => {
      const down = head.ariaSort === 'ascending';
      for (const other of heads) other.ariaSort = other === head ? (down ? 'descending' : 'ascending') : null;
      const [body] = table.tBodies;
      body.append(...sorted(body.rows, read(column), down));
    });
  });
}

// ---- Pages that are programs of their own ------------------------------------------------------------------------

const programs = [
  ['form.sp-filters:not([data-sp-explorer] *)', () => import('./filters.js')],
  ['[data-sp-compare]', () => import('./compare.js')],
  ['[data-sp-yours]', () => import('./yours.js')],
];

/** The explorer has its first rows in the page. It comes when a reader turns to it, or an address asks for a view. */
function explorer(element, charts) {
  const kinds = ['pointerover', 'touchstart', 'focusin', 'input', 'click'];
  let pressed;
  let coming;
  const ask = (event) => {
    pressed = event?.type === 'click' ? event.target.closest('button') : pressed;
    coming ??= import('./explorer.js').then(({start}) => start(element, charts)).then(() => {
      for (const kind of kinds) element.removeEventListener(kind, ask);
      // What was pressed meanwhile.
      pressed?.click();
    }).catch(() => null);
  };
  for (const kind of kinds) element.addEventListener(kind, ask, {passive: true});
  if (location.search) ask();
}

function begin() {
  const charts = [...document.querySelectorAll('.sp-chart[data-sp-chart]')].map(chartOf);
  for (const image of document.querySelectorAll('.sp-chart img')) whenSeen(image, () => embed(image));
  document.querySelectorAll('table.sp-sortable:not([data-sp-own])').forEach(sortable);
  document.querySelectorAll('[data-sp-explorer]').forEach((element) => explorer(element, charts));
  for (const [selector, load] of programs) {
    const element = document.querySelector(selector);
    // A program that cannot start leaves the page as it is.
    if (element) load().then((program) => program.start(element, charts)).catch(() => null);
  }
}

colours();
bars();
reveal();
addEventListener('hashchange', reveal);
document.addEventListener('change', menu);
begin();
