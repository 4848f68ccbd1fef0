// Filters: what the boxes of a form ask for, and the same in the address of the page.

const boxes = (form) => [...form.querySelectorAll('input[type=checkbox]')];

/** Whether a row, given as a function from field to value, passes; a field that it does not have lets it through. */
const passes = (fields) => (read) =>
  Object.entries(fields).every(([name, wanted]) => {
    const value = read(name);
    return value === undefined || value === null || wanted.includes(String(value));
  });

/** Write fields (name to list of values) into the address; an empty list takes the field out. */
export function remember(fields) {
  const url = new URL(location.href);
  for (const [name, values] of Object.entries(fields)) {
    url.searchParams.delete(name);
    for (const value of values) url.searchParams.append(name, value);
  }
  history.replaceState(history.state, '', url);
}

/** Call `apply` now, and whenever a reader has changed a box, with what rows must pass and the values by field. */
export function connect(form, apply) {
  const show = () => {
    const fields = {};
    for (const box of boxes(form)) if (box.checked) (fields[box.name] ??= []).push(box.value);
    apply(passes(fields), fields);
    return fields;
  };
  const changed = () => {
    const none = Object.fromEntries(boxes(form).map(({name}) => [name, []]));
    remember({...none, ...show()});
  };
  form.addEventListener('change', changed);
  form.addEventListener('reset', () => setTimeout(changed));
  form.addEventListener('submit', (event) => event.preventDefault());
  // Tick what the address asks for. A box that was changed before this script came stays as the reader left it.
  const query = new URLSearchParams(location.search);
  for (const box of boxes(form)) {
    if (box.checked === box.defaultChecked) box.checked = query.getAll(box.name).includes(box.value);
  }
  if (boxes(form).some(({checked}) => checked)) changed();
  else show();
}

/** The form of a page with charts and tables: it holds for all of them. */
export function start(form, charts) {
  const rows = [...document.querySelectorAll('tr[data-sp-row]')];
  connect(form, (pass, fields) => {
    const active = Object.keys(fields).length > 0;
    for (const row of rows) row.hidden = !pass((name) => row.dataset[name]);
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector('output').textContent = active && rows.length ? `${shown} of ${rows.length} rows` : '';
    for (const chart of charts) {
      chart.pass = pass;
      if (chart.view) chart.live.then((live) => live.filter(pass));
      else if (active) chart.start();
    }
  });
}
