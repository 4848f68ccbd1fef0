// What a reader takes along of a chart: its rows as CSV, the drawing as SVG or PNG.
const SCALE = 2;
const FONT = 'Helvetica Neue, Arial, sans-serif';

/** Hand text or a blob to the reader as a file. */
export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], {type});
  const link = Object.assign(document.createElement('a'), {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
const plain = (value) => value.replace(/^([=+@\t]|-(?!\d))/, "'$1");
const quoted = (value) => (/[",\n]/.test(value) ? `"${plain(value).replaceAll('"', '""')}"` : plain(value));

/** Rows (objects) as CSV with a header; a value that is no text or number is left out. */
export function csv(rows) {
  const isValue = (value) => ['string', 'number', 'boolean'].includes(typeof value);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => isValue(row[name]))))];
  const line = (values) => values.map((value) => quoted(String(value ?? ''))).join(',');
  return `${[names, ...rows.map((row) => names.map((name) => row[name]))].map(line).join('\n')}\n`;
}

/** Names of the data sets that marks are drawn from, in a Vega specification or a group of it. */
const drawn = (part) => (part.marks ?? []).flatMap((mark) => [mark.from?.data, mark.from?.facet?.data, ...drawn(mark)]);

/** The rows behind the marks of a view: those of the data set with most. */
export function rowsOf(view, specification) {
  const known = new Set(specification.data.map((set) => set.name));
  const sets = [...new Set(drawn(specification))].filter((name) => known.has(name)).map((name) => view.data(name));
  return sets.reduce((most, rows) => (rows.length > most.length ? rows : most), []);
}

/** The drawing that is shown, as a file of its own: with colours in place of variables, on a ground, without links. */
export function svg(chart) {
  const shown = [...chart.querySelectorAll('svg')].find((element) => element.getClientRects().length);
  const drawing = shown.cloneNode(true);
  for (const link of drawing.querySelectorAll('a')) link.replaceWith(...link.childNodes);
  const [width, height] = ['width', 'height'].map((name) => shown.getAttribute(name));
  for (const [name, value] of [['xmlns', 'http://www.w3.org/2000/svg'], ['font-family', FONT]]) {
    drawing.setAttribute(name, value);
  }
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of Object.entries({width, height, fill: 'var(--sp-bg)'})) ground.setAttribute(name, value);
  drawing.prepend(ground);
  const colours = getComputedStyle(document.body);
  const text = new XMLSerializer().serializeToString(drawing);
  return text.replace(/var\((--[\w-]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
}

/** A drawing as PNG, twice as large. */
export async function png(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth * SCALE;
  canvas.height = image.naturalHeight * SCALE;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}
