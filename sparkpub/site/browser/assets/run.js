// The page of a run that has none of its own: what the page would hold lies in a packed file, which the address names.
import {json} from './page.js';

/** The raw record: its text is fetched when it is opened. */
function raw(details) {
  const read = async () => {
    const answer = await fetch(details.dataset.spRaw);
    if (answer.ok) details.querySelector('pre').textContent = await answer.text();
  };
  details.addEventListener('toggle', read, {once: true});
}

export async function start(element) {
  const run = new URLSearchParams(location.search).get('run') ?? '';
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(run)) throw new Error('no run');
  const {page} = await json(new URL(`../${run}/run.packed`, location).href);
  // Scripts in a parsed document do not run, and the policy of the page allows none.
  const parsed = new DOMParser().parseFromString(page, 'text/html');
  // The link past the navigation leads to the heading that was there first.
  const heading = element.closest('article').querySelector('h1');
  parsed.querySelector('h1').id = heading.id;
  heading.remove();
  element.replaceWith(...parsed.body.childNodes);
  document.title = document.querySelector('h1')?.textContent ?? run;
  document.querySelectorAll('details[data-sp-raw]').forEach(raw);
  document.dispatchEvent(new Event('sp-content'));
}
