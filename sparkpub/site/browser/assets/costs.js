// What a million tokens cost, from prices that the reader can change. Kept in the address of the page.
import {remember} from './filters.js';

const HOURS_PER_YEAR = 8766;

const money = (value) => (value < 0.995 ? value.toPrecision(2) : value.toFixed(2));

export function start(form) {
  const query = new URLSearchParams(location.search);
  const typed = (input) => input.value !== input.defaultValue;
  for (const input of form.elements) if (query.get(input.name) && !typed(input)) input.value = query.get(input.name);
  const show = () => {
    const [kwh, machine, years] = ['kwh', 'machine', 'years'].map((name) => Number(form.elements[name].value));
    for (const row of document.querySelectorAll('.sp-costs tbody tr')) {
      const hours = 1e6 / Number(row.dataset.rate) / 3600;
      const [electricity, share] = [...row.cells].slice(-2);
      electricity.textContent = row.dataset.kwh ? money(kwh * Number(row.dataset.kwh)) : '–';
      share.textContent = years > 0 ? money((machine / (years * HOURS_PER_YEAR)) * hours) : '–';
    }
  };
  const change = () => {
    show();
    remember(Object.fromEntries([...form.elements].map(({name, value}) => [name, [value]])));
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', change);
  // A price may have been typed before this script came.
  if ([...form.elements].some(typed)) change();
  else show();
}
