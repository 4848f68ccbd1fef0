// A reader's own result beside the published ones. The file is read here and sent nowhere.
import {head, json, make, number} from './page.js';

const known = (value) => (Number.isFinite(Number(value)) && value !== null && value !== '' ? Number(value) : null);

const wordsOf = (id) => `-${(String(id).toLowerCase().match(/\p{L}+|\p{Nd}+/gu) ?? []).join('-')}-`;

/** The published rows of the model that a name means: the longest key that is in it, whatever stands around. */
export function ofModel(name, published) {
  const words = wordsOf(name);
  const meant = published.filter(({key}) => words.includes(`-${key}-`));
  const longest = Math.max(0, ...meant.map(({key}) => key.length));
  return meant.filter(({key}) => key.length === longest);
}

/** Rows `model, tool, input, output, users, depth, rate, total, ttft` of a result in a format that is known here. */
export function read(document) {
  if (document.metrics && document.requested) return [ofRecord(document)];
  if (Array.isArray(document)) return document.filter((row) => row.model_filename && row.n_gen).map((row) => ofLlamaBench(document, row));
  if (Array.isArray(document.benchmarks) && document.model) return document.benchmarks.map((row) => ofBenchy(document, row)).filter(Boolean);
  if ('output_throughput' in document && 'model_id' in document) return [ofVllm(document)];
  return [];
}

const NOTHING = {input: null, output: null, users: null, depth: 0, rate: null, total: null, ttft: null};

function ofRecord({metrics, requested}) {
  const asked = requested.workload;
  const value = (...names) => names.map((name) => metrics[name]?.value).find((found) => found != null) ?? null;
  const users = known(asked.concurrency ?? asked.max_concurrency ?? asked.batch_size);
  return {
    model: requested.model_id,
    tool: [asked.type, asked.mode].filter(Boolean).join(' '),
    input: known(asked.input_tokens),
    output: known(asked.output_tokens),
    users: asked.type === 'llama-bench' ? 1 : users,
    depth: known(asked.depth) ?? 0,
    rate: known(asked.request_rate),
    total: value('output_throughput_tok_s'),
    ttft: value('ttft_p50_ms', 'ttft_mean_ms'),
  };
}

function ofBenchy(document, row) {
  if (row.is_context_prefill_phase || !row.tg_throughput) return null;
  return {
    ...NOTHING,
    model: document.model,
    tool: 'llama-benchy',
    input: known(row.prompt_size),
    output: known(row.response_size),
    users: known(row.concurrency),
    depth: known(row.context_size) ?? 0,
    total: known(row.tg_throughput.mean),
    ttft: known(row.e2e_ttft?.mean ?? row.ttfr?.mean),
  };
}

function ofLlamaBench(all, row) {
  // A test generates after a prompt of its own, or after that of another test at the same depth.
  const prompts = all.filter((other) => other.model_filename === row.model_filename && other.n_depth === row.n_depth && !other.n_gen);
  return {
    ...NOTHING,
    model: row.model_filename.split(/[\\/]/).at(-1),
    tool: 'llama-bench',
    input: row.n_prompt || (prompts.length === 1 ? prompts[0].n_prompt : null),
    output: known(row.n_gen),
    users: 1,
    depth: known(row.n_depth) ?? 0,
    total: known(row.avg_ts),
  };
}

function ofVllm(document) {
  const each = (total) => (document.completed ? Math.round(total / document.completed) : null);
  return {
    ...NOTHING,
    model: document.model_id,
    tool: 'vllm-bench serve',
    input: each(document.total_input_tokens),
    output: each(document.total_output_tokens),
    users: known(document.max_concurrency),
    rate: known(document.request_rate),
    total: known(document.output_throughput),
    ttft: known(document.median_ttft_ms ?? document.mean_ttft_ms),
  };
}

const doublings = (a, b) => Math.abs(Math.log2((a || 1) / (b || 1)));

/** How far two loads are apart, in doublings; another tool or flow is further than all lengths. */
export function distance(mine, other) {
  return (
    100 * (mine.tool !== other.tool) +
    100 * ((mine.rate === null) !== (other.rate === null)) +
    3 * doublings(mine.users, other.users) +
    doublings(mine.input + mine.depth, other.input + other.depth) +
    doublings(mine.output, other.output) +
    doublings(mine.rate, other.rate)
  );
}

const ALIKE = 0.1;
const REPEAT_PERCENT = 5;
const MOST_ROWS = 8;

/** The published rows of the reader's model under the nearest load: those of the same weights first, then the fastest. */
export function beside(mine, published) {
  const same = ofModel(mine.model, published);
  const near = Math.min(...same.map((row) => distance(mine, row)));
  return same
    .filter((row) => distance(mine, row) <= near + 1e-9)
    .map((row) => ({...row, alike: near < ALIKE, own: row.weights_id.toLowerCase() === String(mine.model).toLowerCase()}))
    .sort((a, b) => b.own - a.own || b.total - a.total);
}

const loadName = ({users, rate, input, output, depth}) =>
  [
    rate ? `${rate} requests/s` : users === 1 ? 'one user' : users ? `${users} users` : null,
    input ? `${number(input, 0)} in` : null,
    output ? `${number(output, 0)} out` : null,
    depth ? `${number(depth, 0)} in context` : null,
  ]
    .filter(Boolean)
    .join(', ');

/** Where the best row is from, and the change from it where both had the same load. */
function told(mine, best) {
  const weights = best.own ? 'with the same weights, ' : '';
  if (!best.alike) return ` ${weights}under the nearest load (${best.load}).`;
  const change = 100 * (mine.total / best.total - 1);
  const near = Math.abs(change) <= REPEAT_PERCENT ? ', as a repeat may differ' : '';
  return ` ${weights}under the same load (${change >= 0 ? '+' : ''}${number(change, 0)} %${near}).`;
}

function section(mine, found, root) {
  const place = make('section', {}, make('h3', {}, `${mine.model}: ${loadName(mine)}`));
  const [best] = found;
  if (mine.total === null || !best) {
    const figure = mine.total === null ? 'This file has no output throughput.' : `Yours: ${number(mine.total, 1)} tok/s.`;
    place.append(make('p', {}, best ? figure : `${figure} No figure of ${mine.model} is published here.`));
    return place;
  }
  const figures = `Yours: ${number(mine.total, 1)} tok/s, published here: ${number(best.total, 1)}`;
  const line = (first, load, {total, ttft}) => {
    const cells = [load, number(total, 1), ttft === null ? '' : number(ttft, 0)];
    return make('tr', {}, make('th', {scope: 'row'}, first), ...cells.map((text) => make('td', {}, text)));
  };
  const lines = found.slice(0, MOST_ROWS).map((row) => {
    const link = make('a', {href: root + row.href}, `${row.model}, ${row.recipe}`);
    return line(link, row.load, row);
  });
  const heads = head('Recipe', 'Load', 'tok/s', 'First token (ms)');
  const body = make('tbody', {}, line('yours', loadName(mine), mine), ...lines);
  place.append(make('p', {}, make('strong', {}, figures), told(mine, best)), make('table', {className: 'sp-table'}, heads, body));
  return place;
}

const UNKNOWN =
  'is no record of sparkpub and no JSON of llama-benchy, llama-bench or vllm bench serve with a throughput. sparkpub import reads more formats.';

/** The rows of a file, or why it has none. */
async function taken(file) {
  let rows = [];
  try {
    rows = read(JSON.parse(await file.text()));
  } catch {
    // Not JSON: refused below, with the formats that are read.
  }
  return rows.length ? {rows} : {refused: `${file.name} ${UNKNOWN}`};
}

export function start(form) {
  const result = document.querySelector('[data-sp-result]');
  const show = async () => {
    const published = await json(form.dataset.spRaw);
    const model = form.elements.model.value.trim();
    const parts = [];
    for (const file of form.elements.file.files) {
      const {rows = [], refused} = await taken(file);
      if (refused) parts.push(make('p', {}, refused));
      for (const row of rows) {
        const mine = model ? {...row, model} : row;
        parts.push(section(mine, beside(mine, published), form.dataset.spRoot));
      }
    }
    result.replaceChildren(...parts);
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', show);
  // A file that was chosen before this script ran, or that the browser kept over a reload.
  if (form.elements.file.files.length) show();
}
