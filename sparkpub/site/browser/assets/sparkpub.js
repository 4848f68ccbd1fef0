// What every page loads. Charts stay drawings until a reader points at, touches, focuses or filters one.
import {chosen, passes, rememberForm, restore} from './filters.js';

// ---- Filters: one form, all charts and tables of the page, and the address -------------------------------------

function filterTables(pass) {
  let shown = 0;
  let all = 0;
  for (const row of document.querySelectorAll('tr[data-sp-row]')) {
    row.hidden = !pass((name) => row.dataset[name]);
    all += 1;
    shown += !row.hidden;
  }
  return [shown, all];
}

function filters(charts) {
  const form = document.querySelector('form.sp-filters:not([data-sp-own])');
  if (!form) return () => true;
  let pass = () => true;
  const apply = () => {
    const fields = chosen(form);
    const active = Object.keys(fields).length > 0;
    pass = passes(fields);
    const [shown, all] = filterTables(pass);
    const said = form.querySelector('[aria-live]');
    if (said) said.textContent = active && all ? `${shown} of ${all} rows` : '';
    form.classList.toggle('sp-active', active);
    for (const chart of charts) {
      if (chart.view) chart.view.then((view) => view?.filter(pass));
      else if (active) chart.start();
    }
  };
  const changed = () => {
    apply();
    rememberForm(form);
  };
  form.addEventListener('change', changed);
  form.addEventListener('reset', () => setTimeout(changed));
  form.addEventListener('submit', (event) => event.preventDefault());
  restore(form);
  form.hidden = false;
  if (form.querySelector('input:checked')) setTimeout(apply);
  return (read) => pass(read);
}

// ---- What a search found may lie in a part that is closed --------------------------------------------------------

function found() {
  const words = (new URLSearchParams(location.search).get('h') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const holds = ({textContent}) => words.some((word) => textContent.toLowerCase().includes(word));
  const part = [...document.querySelectorAll('.md-content details')].find(holds);
  if (part) part.open = true;
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

// ---- Charts ----------------------------------------------------------------------------------------------------

function chartsOf(pass) {
  return [...document.querySelectorAll('.sp-chart[data-sp-chart]')].map((element) => {
    const link = document.createElement('a');
    link.className = 'sp-mark';
    link.href = `#${element.closest('[id]')?.id ?? ''}`;
    link.setAttribute('aria-label', 'Points of this chart: the arrow keys choose a run, Enter opens it');
    element.append(link);
    const chart = {
      element,
      start() {
        // A chart that cannot start stays as drawn.
        chart.view ??= import('./live.js').then((live) => live.start(element, link, pass())).catch(() => null);
      },
    };
    // A pointer may have come before this script: it asks as soon as it moves.
    for (const kind of ['pointerenter', 'pointermove', 'touchstart', 'focusin']) {
      element.addEventListener(kind, chart.start, {once: true, passive: true});
    }
    // A figure that the build did not draw draws itself as it comes into view.
    if (element.closest('[data-sp-now]')) {
      const watch = (seen, observer) => seen.some((entry) => entry.isIntersecting) && (observer.disconnect(), chart.start());
      new IntersectionObserver(watch).observe(element);
    }
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
  });
}

/** A drawing in a file becomes part of the page: in WebKit the colours of an image do not follow the palette. */
async function embed(image) {
  const text = await (await fetch(image.src)).text();
  // Its colours come from the page; the page's policy would refuse a style sheet in it.
  const unstyled = text.replace(/<style>[^<]*<\/style>/, '');
  const drawing = new DOMParser().parseFromString(unstyled, 'image/svg+xml').documentElement;
  image.replaceWith(drawing);
}

// ---- Tables: sort by a click on a header, copy as Markdown -------------------------------------------------------

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

const line = (row) => `| ${[...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`;

function copyable(table) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'sp-copy';
  button.textContent = 'Copy as Markdown';
  button.addEventListener('click', async () => {
    const [head, ...rows] = [...table.rows].filter((row) => !row.hidden).map((row) => [line(row), row.cells.length]);
    const text = [head[0], `|${' --- |'.repeat(head[1])}`, ...rows.map(([row]) => row)].join('\n');
    await navigator.clipboard.writeText(`${text}\n`);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy as Markdown'), 1500);
  });
  (table.closest('.sp-scroll') ?? table).after(button);
}

// ---- The raw record: the link to its file becomes the text when it is opened -------------------------------------

function raw(details) {
  const read = async () => {
    const answer = await fetch(details.dataset.spRaw);
    if (!answer.ok) return;
    const text = Object.assign(document.createElement('pre'), {className: 'sp-pre', textContent: await answer.text()});
    const box = Object.assign(document.createElement('div'), {className: 'sp-scroll', tabIndex: 0});
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', 'Raw record');
    box.append(text);
    details.append(box);
  };
  // A reader may have been faster than this script.
  if (details.open) read();
  else details.addEventListener('toggle', read, {once: true});
}

// ---- What a reader takes along of a figure: the browser makes it ---------------------------------------------------

function takeaways(links, charts) {
  const figure = links.closest('figure');
  const element = figure.querySelector('.sp-chart');
  const chart = charts.find((one) => one.element === element);
  const make = {
    async csv(files) {
      chart.start();
      const {made, specification} = await chart.view;
      files.save(`${figure.id}.csv`, files.csv(files.rowsOf(made, specification)), 'text/csv');
    },
    svg: (files) => files.save(`${figure.id}.svg`, files.svg(element), 'image/svg+xml'),
    png: async (files) => files.save(`${figure.id}.png`, await files.png(files.svg(element))),
    embed: (files) => navigator.clipboard.writeText(files.frame(figure)),
  };
  for (const button of links.querySelectorAll('button')) {
    if (button.name === 'csv' && !chart) continue;
    button.hidden = false;
    button.addEventListener('click', async () => {
      await make[button.name](await import('./files.js'));
      if (button.name !== 'embed') return;
      button.textContent = 'Copied: one line of HTML';
      setTimeout(() => (button.textContent = 'Embed'), 2500);
    });
  }
}

/** In the frame of another page: the one figure that it asks for, and where it is from. */
function embedded() {
  const figure = document.getElementById(new URLSearchParams(location.search).get('embed') ?? '');
  if (!figure?.matches('.sp-figure')) return;
  const body = Object.assign(document.createElement('main'), {className: 'md-typeset sp-embedded'});
  const from = Object.assign(document.createElement('a'), {href: location.pathname, textContent: document.title});
  const line = Object.assign(document.createElement('p'), {className: 'sp-sample'});
  line.append('From ', from);
  body.append(figure, line);
  document.body.replaceChildren(body);
  for (const link of body.querySelectorAll('a')) link.setAttribute('target', '_top');
}

// ---- Pages that are programs of their own ------------------------------------------------------------------------

const programs = [
  ['[data-sp-explorer]', () => import('./explorer.js')],
  ['[data-sp-compare]', () => import('./compare.js')],
  ['[data-sp-log]', () => import('./log.js')],
  ['[data-sp-board]', () => import('./leaderboard.js')],
  ['[data-sp-yours]', () => import('./yours.js')],
  ['[data-sp-cost]', () => import('./costs.js')],
  ['[data-sp-run]', () => import('./run.js')],
];

function begin() {
  let pass = () => true;
  embedded();
  const charts = chartsOf(() => pass);
  pass = filters(charts);
  for (const image of document.querySelectorAll('.sp-chart img')) {
    if (image.naturalWidth) embed(image);
    else image.addEventListener('load', () => embed(image), {once: true});
  }
  document.querySelectorAll('table.sp-sortable').forEach(sortable);
  document.querySelectorAll('table.sp-copyable').forEach(copyable);
  document.querySelectorAll('details[data-sp-raw]').forEach(raw);
  for (const links of document.querySelectorAll('figure .sp-links')) takeaways(links, charts);
  for (const [selector, load] of programs) {
    const element = document.querySelector(selector);
    // A program that cannot start leaves the plain table, whole.
    const plain = () => {
      document.querySelector('[data-sp-static]')?.classList.add('sp-shown');
    };
    if (element) load().then((program) => program.start(element)).catch(plain);
  }
}

menu();
bars();
found();
begin();
// A page whose content came later begins again with it.
document.addEventListener('sp-content', begin);
