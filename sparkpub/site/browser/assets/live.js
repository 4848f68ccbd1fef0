// Charts that answer: a live view of the same size takes the place of a drawing.
import {json, make} from './sparkpub.js';

const vega = () => import('./vega.js');

// Marks lead to runs by a real link (below), never by a click that Vega makes up.
const loader = {load: () => Promise.reject(), sanitize: () => Promise.reject(), options: {}};

/** A view in `place`, drawn off the page. */
export async function view(specification, rows, place) {
  const {makeView} = await vega();
  const made = await makeView({...specification, datasets: {rows}}, place, loader);
  await made.runAsync();
  // The figure's sentence and table speak for the drawing; a list of its marks would not.
  for (const name of ['role', 'aria-roledescription', 'aria-label']) place.removeAttribute(name);
  place.setAttribute('aria-hidden', 'true');
  return made;
}

const root = new URL('../../../', import.meta.url);

export async function start(element, link, pass) {
  vega();
  const narrow = getComputedStyle(element.querySelector('.sp-wide')).display === 'none';
  const {spChart, spRows} = element.dataset;
  const [chart, rows] = await Promise.all([json(spChart), spRows && json(spRows)]);
  const specification = narrow ? chart.narrow : chart.wide;
  // Vega writes into rows, so each chart gets its own.
  const kept = () => (rows ?? chart.rows).filter((row) => pass((field) => row[field])).map((row) => ({...row}));
  const place = document.createElement('div');
  const made = await view(specification, kept(), place);
  const drawing = element.querySelector(narrow ? '.sp-narrow' : '.sp-wide');
  // The browser's fonts may differ by a pixel from those of the build; the page must not move.
  const [width, height] = ['width', 'height'].map((name) => drawing.firstChild.getAttribute(name));
  Object.assign(place.style, {aspectRatio: `${width} / ${height}`, minHeight: 0});
  drawing.replaceChildren(place);
  const tip = tips(made, element, link);
  return {
    made,
    specification,
    async filter(next) {
      if (next === pass) return;
      pass = next;
      made.data('rows', kept());
      tip.hide();
      await made.runAsync();
    },
  };
}

// ---- Hover, touch and arrow keys: one tooltip, and one real link that lies over the mark ---------------------------

/** What a tooltip tells, as names and values. */
const told = (tip) => (typeof tip === 'object' ? Object.entries(tip) : [['', tip]]);

function tips(made, element, link) {
  const box = make('div', {className: 'sp-tip', ariaHidden: 'true'});
  const hide = () => {
    box.remove();
    if (document.activeElement !== link) link.classList.remove('sp-on');
  };
  const show = (item) => {
    const mark = item._svg?.getBoundingClientRect();
    if (!mark) return;
    box.replaceChildren(...told(item.tooltip).map(([name, text]) => make('div', {}, make('span', {}, name), make('b', {}, text))));
    document.body.append(box);
    const x = Math.min(mark.right + 12, innerWidth - box.offsetWidth - 8);
    const y = mark.top - box.offsetHeight - 8;
    box.style.transform = `translate(${Math.max(8, x)}px, ${y < 8 ? mark.bottom + 8 : y}px)`;
    if (!item.href) return link.classList.remove('sp-on');
    const frame = element.getBoundingClientRect();
    const size = Math.max(24, mark.width, mark.height);
    link.href = new URL(item.href, root).href;
    link.classList.add('sp-on');
    link.style.cssText =
      `left:${(mark.left + mark.right - size) / 2 - frame.left}px;top:${(mark.top + mark.bottom - size) / 2 - frame.top}px;` +
      `width:${size}px;height:${size}px`;
  };
  made.addEventListener('mouseover', (event, item) => (item?.tooltip ? show(item) : hide()));
  made.addEventListener('mouseout', (event) => event.relatedTarget !== link && hide());
  link.addEventListener('mouseleave', hide);
  link.addEventListener('blur', hide);
  link.addEventListener('click', hide);
  keys(made, link, show);
  return {hide};
}

/** Items of a scene that lead somewhere, from left to right and top to bottom. */
function targets(item, found = []) {
  for (const child of item.items ?? []) {
    if (child.href && child._svg) found.push(child);
    targets(child, found);
  }
  return found;
}

function keys(made, link, show) {
  let current = null;
  link.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!step && event.key !== 'Home' && event.key !== 'End') return;
    event.preventDefault();
    const items = targets(made.scenegraph().root)
      .map((item) => [item, item._svg.getBoundingClientRect()])
      .sort(([, a], [, b]) => a.left - b.left || a.top - b.top)
      .map(([item]) => item);
    if (!items.length) return;
    const at = items.findIndex((item) => item.datum === current);
    const next = event.key === 'Home' ? 0 : event.key === 'End' ? items.length - 1 : (at + step + items.length) % items.length;
    const item = items[at < 0 && step < 0 ? items.length - 1 : next];
    current = item.datum;
    show(item);
    link.setAttribute('aria-label', told(item.tooltip).map((pair) => pair.join(' ').trim()).join(', '));
  });
}
