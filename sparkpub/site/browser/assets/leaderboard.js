// The leaderboard: filters, search and order over all its tables, kept in the address of the page.
import {chosen, passes, remember, rememberForm, restore} from './filters.js';

// Rows of a load that are laid out before a reader asks for all, as the style sheet has it for the page as it comes.
const LIMIT = 100;

const number = (row, column) => {
  const figure = row.querySelector(`.sp-${column} b`);
  return figure ? Number(figure.textContent.replaceAll(',', '')) : null;
};

/** What a reader can search a row by: its own words and those of its load, read once. */
function wordsOf(row) {
  const load = row.parentElement.rows[0].textContent;
  return `${row.closest('section').id} ${load} ${row.textContent}`.toLowerCase();
}

/** Which rows are shown, at most `limit` of a load. Returns how many rows fit, and how many there are. */
function filtered(bodies, form, words, limit) {
  const pass = passes(chosen(form));
  const wanted = form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  let all = 0;
  for (const body of bodies) {
    let left = 0;
    for (const row of [...body.rows].slice(1)) {
      let fits = pass((name) => row.dataset[name] ?? body.dataset[name]);
      if (fits && wanted.length) {
        if (!words.has(row)) words.set(row, wordsOf(row));
        fits = wanted.every((word) => words.get(row).includes(word));
      }
      left += fits;
      row.hidden = !fits || left > limit;
      all += 1;
    }
    body.hidden = !left;
    body.classList.add('sp-chosen');
    shown += left;
  }
  for (const part of document.querySelectorAll('.sp-board-part')) {
    part.hidden = !part.querySelector('tbody:not([hidden])');
  }
  return [shown, all];
}

/** The best first; rows without a figure last. The bars show what the rows are sorted by. */
function sorted(bodies, column, direction) {
  const sign = direction === 'lower' ? 1 : -1;
  for (const body of bodies) {
    const [load, ...rows] = body.rows;
    const values = new Map(rows.map((row) => [row, number(row, column)]));
    const largest = Math.max(...[...values.values()].filter((value) => value !== null));
    rows.sort((a, b) => {
      const [first, second] = [values.get(a), values.get(b)];
      if (first === null || second === null) return (first === null) - (second === null);
      return sign * (first - second);
    });
    for (const row of rows) {
      const bar = row.querySelector('.sp-bar');
      const value = values.get(row);
      if (!bar) continue;
      row.querySelector(`.sp-${column}`)?.append(bar);
      bar.firstElementChild.setAttribute('width', `${(100 * value) / largest}%`);
    }
    body.append(load, ...rows);
  }
  for (const head of document.querySelectorAll('.sp-board th[data-sort]')) {
    if (head.dataset.sort !== column) head.removeAttribute('aria-sort');
    else head.setAttribute('aria-sort', direction === 'lower' ? 'ascending' : 'descending');
  }
}

/** How many values of each field are chosen, beside its name. */
function counted(form) {
  for (const facet of form.querySelectorAll('details')) {
    const ticked = facet.querySelectorAll('input:checked').length;
    facet.querySelector('summary span').textContent = ticked ? ` (${ticked})` : '';
  }
}

/** A header sorts all tables, as the form does. */
function headers(form, changed) {
  for (const head of document.querySelectorAll('.sp-board th[data-sort]')) {
    const button = Object.assign(document.createElement('button'), {type: 'button'});
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      form.elements.sort.value = head.dataset.sort;
      changed();
    });
  }
}

/** A button below each table of which some rows are not laid out. */
function wholeButtons(bodies, show) {
  const long = bodies.filter((body) => body.rows.length - 1 > LIMIT);
  const tables = new Set(long.map((body) => body.closest('table')));
  for (const table of tables) {
    const button = Object.assign(document.createElement('button'), {type: 'button', className: 'sp-button', textContent: 'Show all rows'});
    button.addEventListener('click', () => {
      button.remove();
      show();
    });
    (table.closest('.sp-scroll') ?? table).after(button);
  }
}

export function start(form) {
  const bodies = [...document.querySelectorAll('.sp-board tbody')];
  const words = new Map();
  const select = form.elements.sort;
  const usual = select.value;
  let order = usual;
  let limit = LIMIT;

  const apply = () => {
    if (select.value !== order) {
      order = select.value;
      sorted(bodies, order, select.selectedOptions[0].dataset.direction);
    }
    const [shown, all] = filtered(bodies, form, words, limit);
    const active = shown < all || order !== usual || form.elements.find.value !== '';
    form.classList.toggle('sp-active', active);
    counted(form);
    form.querySelector('[aria-live]').textContent = shown < all ? `${shown} of ${all} rows` : '';
  };
  const changed = () => {
    apply();
    rememberForm(form);
    const find = form.elements.find.value;
    remember({find: find ? [find] : [], sort: order === usual ? [] : [order]});
  };

  const query = new URLSearchParams(location.search);
  restore(form);
  form.elements.find.value = query.get('find') ?? '';
  if ([...select.options].some((option) => option.value === query.get('sort'))) select.value = query.get('sort');
  headers(form, changed);
  wholeButtons(bodies, () => {
    limit = Infinity;
    apply();
  });
  form.addEventListener('input', changed);
  // An open list of values closes by Escape, and by a click elsewhere.
  const close = () => form.querySelector('details[open]')?.removeAttribute('open');
  form.addEventListener('keydown', (event) => event.key === 'Escape' && close());
  document.querySelector('main').addEventListener('click', (event) => event.target.closest('.sp-facet') || close());
  form.addEventListener('reset', () => setTimeout(changed));
  form.addEventListener('submit', (event) => event.preventDefault());
  if (query.size) apply();
  form.hidden = false;
}
