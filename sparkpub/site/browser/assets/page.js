// What the programs of the site share: rows by their address, elements, numbers for readers.
const fetched = new Map();

/** The answer for a file of ours; one that ends in `.packed` was compressed by the build. */
async function unpacked(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(url);
  if (!String(url).endsWith('.packed')) return answer;
  return new Response(answer.body.pipeThrough(new DecompressionStream('gzip')));
}

/** An element with properties and children. */
export const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

/** The head of a table. */
export const head = (...texts) => make('thead', {}, make('tr', {}, ...texts.map((text) => make('th', {scope: 'col'}, text))));

/** A number for a reader, as the build writes it: `1,508.17`, with a true minus. */
export function number(value, decimals) {
  const rounded = Number(value.toFixed(decimals)) || 0;
  const digits = {minimumFractionDigits: decimals, maximumFractionDigits: decimals};
  return rounded.toLocaleString('en-US', digits).replace('-', '\u2212');
}

/** A line of samples travels as one row, its `times` and `values` in hundredths and as steps; charts read a row for
 * each. */
const points = ({times, values, ...line}) => {
  if (!times) return [line];
  let [x, value] = [0, 0];
  return times.map((step, i) => ({...line, x: (x += step) / 100, value: (value += values[i]) / 100}));
};

/** JSON by address, fetched once; `#member` picks a list of rows in the document. */
export function json(address) {
  const [url, member] = address.split('#');
  if (!fetched.has(url)) fetched.set(url, unpacked(url).then((answer) => answer.json()));
  return fetched.get(url).then((document) => (member ? document[member].flatMap(points) : document));
}
