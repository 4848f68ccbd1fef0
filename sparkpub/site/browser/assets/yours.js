// A reader's own result beside the published ones. The file is read here and sent nowhere.
import {head, json, make, number} from './page.js';

// Names of models, by the rules of the build (record/weights.py and review/models.py); a test compares the two.
const FORMAT =
  /[-_.:](bfloat16|bf16|(fp|f|float)(16|32)|fp8(-dynamic|-block)?|nvfp4(a16)?|mxfp[48]|fp4|int[48]|w\d+a\d+|awq|gptq(-int[48])?|i?q\d[\p{L}\p{N}_]*|[48]-?bit|gguf)(-\d{5}-of-\d{5})?$/iu;
const TUNED = ['instruct', 'chat', 'it', 'latest'];

const known = (value) => (Number.isFinite(Number(value)) && value !== null && value !== '' ? Number(value) : null);

/** A model's name without its owner and the format of its weights. */
export function modelName(id) {
  const path = String(id).replaceAll('\\', '/').replace(/\/+$/, '');
  const at = path.lastIndexOf('/');
  const [owner, last] = [path.slice(0, Math.max(0, at)), path.slice(at + 1)];
  let name = last;
  while (name.replace(FORMAT, '') && FORMAT.test(name)) name = name.replace(FORMAT, '');
  const rest = name.slice(owner.length + 1);
  const twice = owner && name.toLowerCase().startsWith(`${owner.toLowerCase()}-`);
  return twice && /^\p{L}/u.test(rest) ? rest : name;
}

/** The same for every spelling of a model's name. */
export function modelKey(id) {
  const name = modelName(id).toLowerCase();
  const words = name.match(/\p{L}+|\p{Nd}+/gu) ?? [];
  if (words[0] === 'meta' && words[1] === 'llama') words.shift();
  while (words.length > 1 && TUNED.includes(words.at(-1))) words.pop();
  return words.join('-') || name;
}

/** Rows `model, tool, input, output, users, depth, rate, total, ttft` of a result in a format that is known here. */
export function read(document) {
  if (document.metrics && document.requested) return [ofRecord(document)];
  if (Array.isArray(document)) return document.filter((row) => row.model_filename && row.n_gen).map((row) => ofLlamaBench(document, row));
  if (Array.isArray(document.benchmarks) && document.model) return document.benchmarks.map((row) => ofBenchy(document, row)).filter(Boolean);
  if ('output_throughput' in document && 'model_id' in document) return [ofVllm(document)];
  return [];
}

function ofRecord({metrics, requested, observed}) {
  const asked = requested.workload;
  const value = (...names) => names.map((name) => metrics[name]?.value).find((found) => found != null) ?? null;
  const users = known(asked.concurrency ?? asked.max_concurrency ?? asked.batch_size);
  return {
    model: requested.model_id,
    weights: observed?.quantization ?? observed?.dtype ?? null,
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
    model: document.model,
    tool: 'llama-benchy',
    input: known(row.prompt_size),
    output: known(row.response_size),
    users: known(row.concurrency),
    depth: known(row.context_size) ?? 0,
    rate: null,
    total: known(row.tg_throughput.mean),
    ttft: known(row.e2e_ttft?.mean ?? row.ttfr?.mean),
  };
}

function ofLlamaBench(all, row) {
  // A test generates after a prompt of its own, or after that of another test at the same depth.
  const prompts = all.filter((other) => other.model_filename === row.model_filename && other.n_depth === row.n_depth && !other.n_gen);
  return {
    model: row.model_filename.split(/[\\/]/).at(-1),
    tool: 'llama-bench',
    input: row.n_prompt || (prompts.length === 1 ? prompts[0].n_prompt : null),
    output: known(row.n_gen),
    users: 1,
    depth: known(row.n_depth) ?? 0,
    rate: null,
    total: known(row.avg_ts),
    ttft: null,
  };
}

function ofVllm(document) {
  const each = (total) => (document.completed ? Math.round(total / document.completed) : null);
  return {
    model: document.model_id,
    tool: 'vllm-bench serve',
    input: each(document.total_input_tokens),
    output: each(document.total_output_tokens),
    users: known(document.max_concurrency),
    depth: 0,
    rate: Number.isFinite(Number(document.request_rate)) ? Number(document.request_rate) : null,
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
const MOST_MEGABYTES = 64;

/** The published rows of the reader's model under the nearest load: those of the same weights first, then the fastest. */
export function beside(mine, published) {
  const key = modelKey(mine.model);
  const same = published.filter((row) => row.key === key);
  const near = Math.min(...same.map((row) => distance(mine, row)));
  return same
    .filter((row) => distance(mine, row) <= near + 1e-9)
    .map((row) => ({...row, alike: near < ALIKE, own: row.id.toLowerCase() === String(mine.model).toLowerCase()}))
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

const REPEAT_PERCENT = 5;
/** What a reader should know of a change no larger than one from a measurement to its repeat may be. */
const near = (mine, best) => (Math.abs(100 * (mine.total / best.total - 1)) <= REPEAT_PERCENT ? ', as a repeat may differ' : '');

function told(mine, found, root) {
  const place = make('section', {}, make('h3', {}, `${mine.model}: ${loadName(mine)}`));
  if (mine.total === null) {
    place.append(make('p', {}, 'This file has no output throughput.'));
    return place;
  }
  const [best] = found;
  if (!best) {
    place.append(make('p', {}, `Yours: ${number(mine.total, 1)} tok/s. No figure of ${modelName(mine.model)} is published here.`));
    return place;
  }
  const change = (100 * (mine.total / best.total - 1)).toFixed(0).replace('-', '\u2212');
  const same = best.own ? 'with the same weights, ' : '';
  const where = same + (best.alike ? 'under the same load' : `under the nearest load (${best.load}, ${best.tool})`);
  const answer = make(
    'p',
    {},
    make('strong', {}, `Yours: ${number(mine.total, 1)} tok/s, published here: ${number(best.total, 1)}`),
    ` ${where}${best.alike ? ` (${mine.total >= best.total ? '+' : ''}${change} %${near(mine, best)})` : ''}.`,
  );
  const most = Math.max(...found.map((row) => row.total));
  if (most > best.total) answer.append(` The fastest recipe here makes ${number(most, 1)}.`);
  const line = (first, machine, load, {total, ttft}) => {
    const cells = [machine, load, number(total, 1), ttft === null ? '' : number(ttft, 0)];
    return make('tr', {}, make('th', {scope: 'row'}, first), ...cells.map((text) => make('td', {}, text)));
  };
  const published = found.slice(0, 8).map((row) => {
    const link = make('a', {href: root + row.href}, [row.model, row.weights, row.engine].filter(Boolean).join(', '));
    return line(link, row.machine, row.load, row);
  });
  const heads = head('Recipe', 'Machine', 'Load', 'tok/s', 'First token (ms)');
  const body = make('tbody', {}, line('yours', '', loadName(mine), mine), ...published);
  place.append(answer, make('table', {className: 'sp-table'}, heads, body));
  return place;
}

const UNKNOWN =
  'is no record of sparkpub and no JSON of llama-benchy, llama-bench or vllm bench serve with a throughput. sparkpub import reads more formats.';

export function start(form) {
  const result = document.querySelector('[data-sp-result]');
  let rows = [];
  let refused = [];
  let turn = 0;
  const show = async () => {
    const published = await json(form.dataset.spRaw);
    const model = form.elements.model.value.trim();
    const mine = rows.map((row) => (model ? {...row, model} : row));
    const parts = mine.map((row) => told(row, beside(row, published), form.dataset.spRoot));
    result.replaceChildren(...refused.map((text) => make('p', {}, text)), ...parts);
  };
  const take = async (files) => {
    const own = ++turn;
    const taken = [];
    const others = [];
    for (const file of files) {
      const megabytes = file.size / 1e6;
      if (megabytes > MOST_MEGABYTES) {
        others.push(`${file.name} has ${number(megabytes, 0)} MB: too large for a result.`);
        continue;
      }
      let found = [];
      try {
        found = read(JSON.parse(await file.text()));
      } catch {
        // Not JSON: refused below, with the formats that are read.
      }
      taken.push(...found);
      if (!found.length) others.push(`${file.name} ${file.size ? UNKNOWN : 'is empty.'}`);
    }
    // Of files that are chosen while these are read, the reader wants to see those.
    if (own !== turn) return;
    [rows, refused] = [taken, others];
    await show();
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.elements.file.addEventListener('change', () => take(form.elements.file.files));
  // A file that was chosen before this script ran told nobody.
  if (form.elements.file.files.length) take(form.elements.file.files);
  form.elements.model.addEventListener('change', () => rows.length && show());
}
