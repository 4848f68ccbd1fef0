// What the programs of the site share: rows by their address, elements, numbers for readers.
const fetched = new Map();

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

/** A line of samples travels as one row, with lists of its `x` and `value`; charts read a row for each. */
const points = ({x, value, ...line}) => (Array.isArray(x) ? x.map((at, i) => ({...line, x: at, value: value[i]})) : [{...line, x, value}]);

/** JSON by address, fetched once; `#member` picks a list of rows in the document. */
export function json(address) {
  // Whole, since two programs of a page may name one file from different places.
  const [url, member] = new URL(address, location).href.split('#');
  if (!fetched.has(url)) {
    const answer = fetch(url).then((found) => (found.ok ? found.json() : Promise.reject(new Error(url))));
    fetched.set(url, answer);
  }
  return fetched.get(url).then((document) => (member ? document[member].flatMap(points) : document));
}
