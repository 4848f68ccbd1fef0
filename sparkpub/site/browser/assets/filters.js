// Filters: what a form's boxes ask for, and the same in the address of the page.

/** The values for which a box stands: several where readers see one name for them. */
const values = (box) => box.value.split('|');

/** Names of fields to the values that are ticked. */
export const chosen = (form) => {
  const fields = {};
  for (const box of form.querySelectorAll('input[type=checkbox]:checked')) (fields[box.name] ??= []).push(...values(box));
  return fields;
};

/** Whether a row, given as a function from field to value, passes; a field that it does not have lets it through. */
export const passes = (fields) => (read) =>
  Object.entries(fields).every(([name, wanted]) => {
    const value = read(name);
    return value === undefined || value === null || wanted.includes(String(value));
  });

/** Tick what the address asks for. A box that was changed before this script came stays as the reader left it. */
export function restore(form) {
  const query = new URLSearchParams(location.search);
  for (const box of form.querySelectorAll('input[type=checkbox]')) {
    if (box.checked !== box.defaultChecked) continue;
    const asked = query.get(box.name)?.split(',') ?? [];
    box.checked = values(box).some((value) => asked.includes(value));
  }
}

/** Write fields (name to list of values) into the address; an empty list takes the field out. */
export function remember(fields) {
  const url = new URL(location.href);
  for (const [name, values] of Object.entries(fields)) {
    if (values.length) url.searchParams.set(name, values.join(','));
    else url.searchParams.delete(name);
  }
  history.replaceState(history.state, '', url.href.replaceAll('%2C', ','));
}

/** `remember` for all boxes of a form. */
export function rememberForm(form) {
  const none = Object.fromEntries([...form.querySelectorAll('input[type=checkbox]')].map((box) => [box.name, []]));
  remember({...none, ...chosen(form)});
}
