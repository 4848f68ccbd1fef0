// What every page loads. Charts stay drawings until a reader points at, touches, focuses or filters one.
let charts = [];

// ---- What a search found may lie in a part that is closed --------------------------------------------------------

function found() {
  const words = (new URLSearchParams(location.search).get('h') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const holds = ({textContent}) => words.some((word) => textContent.toLowerCase().includes(word));
  const part = [...document.querySelectorAll('.md-content details')].find(holds);
  if (part) part.open = true;
}

// ---- What an address names may lie in closed parts, one within the other: browsers and the theme open one at most ---

function opened() {
  let part = document.getElementById(location.hash.slice(1));
  for (; part; part = part.parentElement) if (part.localName === 'details') part.open = true;
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

function menu() {
  const drawer = document.getElementById('__drawer');
  drawer?.addEventListener('change', () => {
    if (!drawer.checked) return;
    for (const section of document.querySelectorAll('.md-nav--primary .md-nav__toggle:checked')) section.checked = false;
  });
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
  const link = document.createElement('a');
  link.className = 'sp-mark';
  link.href = `#${element.closest('[id]')?.id ?? ''}`;
  link.setAttribute('aria-label', 'Points of this chart: the arrow keys choose a run, Enter opens it');
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
  const drawing = new DOMParser().parseFromString(unstyled, 'image/svg+xml').documentElement;
  image.replaceWith(drawing);
}

// ---- Tables: sort by a click on a header -------------------------------------------------------

const key = (row, column) => {
  const cell = row.cells[column];
  const text = cell?.dataset.value ?? cell?.textContent.trim() ?? '';
  const number = parseFloat(text.replace('\u2212', '-').replaceAll(',', ''));
  return Number.isNaN(number) ? text.toLowerCase() : number;
};

const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === 'number' ? -1 : 1);

function sortable(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement('button');
    button.type = 'button';
    // A header that leads somewhere keeps its link beside the button.
    if (head.querySelector('a')) button.setAttribute('aria-label', `Sort by ${head.textContent.trim()}`);
    else button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => order(key(a, column), key(b, column)));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}

// ---- Pages that are programs of their own ------------------------------------------------------------------------

const programs = [
  ['form.sp-filters:not([data-sp-own])', () => import('./filters.js')],
  ['[data-sp-compare]', () => import('./compare.js')],
  ['[data-sp-board]', () => import('./leaderboard.js')],
  ['[data-sp-yours]', () => import('./yours.js')],
];

/** The explorer has its first rows in the page. It comes when a reader turns to it, or an address asks for a view. */
function explorer(element) {
  const kinds = ['pointerover', 'touchstart', 'focusin', 'change', 'click'];
  let pressed;
  let coming;
  const ask = (event) => {
    pressed = event?.type === 'click' ? event.target.closest('button') : pressed;
    coming ??= import('./explorer.js').then(({start}) => start(element, charts)).then(() => {
      for (const kind of kinds) element.removeEventListener(kind, ask);
      // What was pressed meanwhile.
      if (pressed) element.querySelector(`button[name="${pressed.name}"][value="${pressed.value}"]`)?.click();
    }).catch(() => null);
  };
  for (const kind of kinds) element.addEventListener(kind, ask, {passive: true});
  if (location.search) ask();
}

function begin() {
  charts = [...document.querySelectorAll('.sp-chart[data-sp-chart]')].map(chartOf);
  for (const image of document.querySelectorAll('.sp-chart img')) whenSeen(image, () => embed(image));
  document.querySelectorAll('table.sp-sortable:not([data-sp-own])').forEach(sortable);
  document.querySelectorAll('[data-sp-explorer]').forEach(explorer);
  for (const [selector, load] of programs) {
    const element = document.querySelector(selector);
    // A program that cannot start leaves the page as it is.
    if (element) load().then((program) => program.start(element, charts)).catch(() => null);
  }
}

colours();
menu();
bars();
found();
opened();
addEventListener('hashchange', opened);
begin();
