// Filters: what a reader asks for in a form, and the same in the address of the page.

/** What a field of a form begins with. */
const begins = (field) => field.querySelector('[selected]')?.value ?? '';
const isChosen = (field) => (field.type === 'checkbox' ? field.checked : field.value !== begins(field));
const fieldsOf = (form) => [...form.elements].filter(({name}) => name);

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

/** Call `apply` now, and whenever a reader changes the form, with what rows must pass and the values by field; returns
 * what does so after a change that no reader made. */
export function connect(form, apply) {
  const changed = () => {
    const fields = {};
    for (const field of fieldsOf(form).filter(isChosen)) (fields[field.name] ??= []).push(field.value);
    form.querySelector('[type=reset]').hidden = !Object.keys(fields).length;
    apply(passes(fields), fields);
    remember({...Object.fromEntries(fieldsOf(form).map(({name}) => [name, []])), ...fields});
  };
  document.addEventListener('input', ({target}) => target.form === form && changed());
  form.addEventListener('reset', () => setTimeout(changed));
  form.addEventListener('submit', (event) => event.preventDefault());
  // What the address asks for. A field that was changed before this script came stays as the reader left it.
  for (const [name, value] of new URLSearchParams(location.search)) {
    for (const field of fieldsOf(form)) {
      if (field.name !== name || isChosen(field)) continue;
      if (field.type === 'checkbox') field.checked = field.value === value;
      else if (!field.options || field.querySelector(`[value="${CSS.escape(value)}"]`)) field.value = value;
    }
  }
  for (const part of form.querySelectorAll('details:has(:checked)')) part.open = true;
  changed();
  return changed;
}

/** The form of a page with charts and rows: it holds for all of them. */
export function start(form, charts) {
  const rows = [...document.querySelectorAll('[data-sp-row]')];
  connect(form, (pass, fields) => {
    const active = Object.keys(fields).length > 0;
    for (const row of rows) row.hidden = !pass((name) => row.dataset[name]);
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector('output').textContent = active && rows.length ? `${shown} of ${rows.length}` : '';
    for (const chart of charts) {
      chart.pass = pass;
      if (chart.view) chart.live.then((live) => live.filter(pass));
      else if (active) chart.start();
    }
  });
}
