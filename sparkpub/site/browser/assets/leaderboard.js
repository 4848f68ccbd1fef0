// The leaderboard: filters over all its tables, kept in the address of the page.
import {connect} from './filters.js';

/** Of each cell show the first figure that fits, and of each table the rows and columns that have one. */
function filter(table, pass) {
  const used = new Set();
  for (const row of table.tBodies[0].rows) {
    let figures = 0;
    for (const cell of [...row.cells].slice(1)) {
      const fits = [...cell.children].filter((entry) => pass((name) => entry.dataset[name] ?? row.dataset[name]));
      for (const entry of cell.children) entry.hidden = entry !== fits[0];
      if (fits.length) used.add(cell.cellIndex);
      figures += fits.length;
    }
    // A row with one cell is a title.
    row.hidden = row.cells.length > 1 && !figures;
  }
  for (const row of table.rows) for (const cell of [...row.cells].slice(1)) cell.hidden = !used.has(cell.cellIndex);
}

export function start(form) {
  let whole = true;
  connect(form, (pass, fields) => {
    const active = Object.keys(fields).length > 0;
    // The page comes as it is without filters.
    if (whole && !active) return;
    whole = !active;
    for (const table of document.querySelectorAll('.sp-board')) filter(table, pass);
    const rows = document.querySelectorAll('.sp-boards tr[data-size]:not([hidden])');
    const models = new Set([...rows].map((row) => row.cells[0].textContent));
    form.querySelector('output').textContent = active ? `${models.size} models` : '';
  });
}
