// A run's log: the page has its end, or fetches it; searching, or a link to an earlier line, fetches the whole once.
import {make, number} from './page.js';

const MOST = 2000;
const END = 200;

const line = (text, index) => make('span', {id: `L${index}`}, make('a', {href: `#L${index}`}, index), ` ${text}\n`);

export function start(element) {
  const pre = element.querySelector('pre');
  let end = [...pre.childNodes];
  let whole;
  const lines = () => (whole ??= fetch(element.dataset.spLog).then((answer) => answer.text()).then((text) => text.split('\n')));
  const field = make('input', {type: 'search', placeholder: 'text'});
  const said = make('output', {ariaLive: 'polite'});
  element.before(make('label', {className: 'sp-search'}, 'Search the log ', field), said);

  const show = (numbered, note) => {
    pre.replaceChildren(...numbered.slice(-MOST).map(([text, index]) => line(text, index)));
    said.textContent = ` ${note}${numbered.length > MOST ? `, the last ${number(MOST, 0)} shown` : ''}`;
  };

  field.addEventListener('input', async () => {
    const wanted = field.value.toLowerCase();
    const all = wanted && (await lines());
    if (wanted !== field.value.toLowerCase()) return;
    if (!wanted) {
      pre.replaceChildren(...end);
      said.textContent = '';
      return;
    }
    const found = all.map((text, index) => [text, index + 1]).filter(([text]) => text.toLowerCase().includes(wanted));
    show(found, `${number(found.length, 0)} of ${number(all.length, 0)} lines`);
  });

  if (!end.length) {
    lines().then((all) => {
      show(all.map((text, index) => [text, index + 1]).filter(([text]) => text).slice(-END), '');
      end = [...pre.childNodes];
    });
  }

  const asked = Number(/^#L(\d+)$/.exec(location.hash)?.[1]);
  if (asked && !document.getElementById(`L${asked}`)) {
    lines().then((all) => {
      const first = Math.max(0, asked - MOST / 2);
      show(all.slice(first, first + MOST).map((text, index) => [text, first + index + 1]), `from line ${first + 1}`);
      document.getElementById(`L${asked}`)?.scrollIntoView({block: 'center'});
    });
  }
}
