// The leaderboard: filters over all its tables, kept in the address of the page.
import {chosen, passes, rememberForm, restore} from './filters.js';

/** Of each cell show the first figure that fits, and of each table the rows and columns that have one. */
function filtered(table, pass) {
  const used = new Set();
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    let figures = 0;
    for (const cell of [...row.cells].slice(1)) {
      const fits = [...cell.children].filter((entry) => pass((name) => entry.dataset[name] ?? row.dataset[name]));
      for (const entry of cell.children) entry.hidden = entry !== fits[0];
      if (fits.length) used.add(cell.cellIndex);
      figures += fits.length;
    }
    row.hidden = !figures;
    shown += !row.hidden;
  }
  for (const row of table.rows) for (const cell of [...row.cells].slice(1)) cell.hidden = !used.has(cell.cellIndex);
  return shown;
}

export function start(form) {
  const tables = [...document.querySelectorAll('.sp-board')];
  const apply = () => {
    const fields = chosen(form);
    const pass = passes(fields);
    for (const section of document.querySelectorAll('.sp-boards')) {
      section.hidden = !(fields.machine ?? [section.dataset.machine]).includes(section.dataset.machine);
    }
    const models = new Set();
    for (const table of tables) {
      filtered(table, pass);
      if (table.closest('[hidden]')) continue;
      for (const row of table.querySelectorAll('tbody tr:not([hidden])')) models.add(row.cells[0].textContent);
    }
    form.classList.toggle('sp-active', Object.keys(fields).length > 0);
    form.querySelector('output').textContent = Object.keys(fields).length ? `${models.size} models` : '';
    for (const facet of form.querySelectorAll('.sp-facet')) {
      const count = facet.querySelectorAll('input:checked').length;
      facet.querySelector('summary span').textContent = count ? ` (${count})` : '';
    }
  };
  const change = () => {
    apply();
    rememberForm(form);
  };
  form.addEventListener('change', change);
  form.addEventListener('reset', () => setTimeout(change));
  document.addEventListener('click', (event) => {
    const open = form.querySelector('.sp-facet[open]');
    if (open && !open.contains(event.target)) open.open = false;
  });
  form.addEventListener('keydown', (event) => {
    const open = event.key === 'Escape' && form.querySelector('.sp-facet[open]');
    if (!open) return;
    open.open = false;
    open.querySelector('summary').focus();
  });
  restore(form);
  if (Object.keys(chosen(form)).length) change();
}
