// A reader's own result beside the published ones. The file is read here and sent nowhere.
import {table} from './compare.js';
import {json, make, number} from './sparkpub.js';

const known = (value) => (Number.isFinite(Number(value)) && value !== null && value !== '' ? Number(value) : null);

const wordsOf = (id) => `-${(String(id).toLowerCase().match(/\p{L}+|\p{Nd}+/gu) ?? []).join('-')}-`;

/** The published rows of the model that a name means: the longest key that is in it, whatever stands around. */
export function ofModel(name, published) {
  const words = wordsOf(name);
  const meant = published.filter(({key}) => words.includes(`-${key}-`));
  const longest = Math.max(0, ...meant.map(({key}) => key.length));
  return meant.filter(({key}) => key.length === longest);
}

/** Rows `model, tool, input, output, users, depth, rate, total, ttft` of a result in a format that is known here, each
 * field as the file has it. */
function read(document) {
  if (document.metrics && document.requested) return [ofRecord(document)];
  if (Array.isArray(document)) return document.filter((row) => row.model_filename && row.n_gen).map((row) => ofLlamaBench(document, row));
  if (Array.isArray(document.benchmarks) && document.model) return document.benchmarks.map((row) => ofBenchy(document, row)).filter(Boolean);
  if ('output_throughput' in document && 'model_id' in document) return [ofVllm(document)];
  return [];
}

function ofRecord({metrics, requested: {model_id: model, workload: asked}}) {
  const value = (...names) => names.map((name) => metrics[name]?.value).find((found) => found != null);
  const users = asked.concurrency ?? asked.max_concurrency ?? asked.batch_size;
  return {
    model,
    tool: [asked.type, asked.mode].filter(Boolean).join(' '),
    input: asked.input_tokens,
    output: asked.output_tokens,
    users: asked.type === 'llama-bench' ? 1 : users,
    depth: asked.depth,
    rate: asked.request_rate,
    total: value('output_throughput_tok_s'),
    ttft: value('ttft_p50_ms', 'ttft_mean_ms'),
  };
}

function ofBenchy({model}, row) {
  if (row.is_context_prefill_phase || !row.tg_throughput) return null;
  return {
    model,
    tool: 'llama-benchy',
    input: row.prompt_size,
    output: row.response_size,
    users: row.concurrency,
    depth: row.context_size,
    total: row.tg_throughput.mean,
    ttft: row.e2e_ttft?.mean ?? row.ttfr?.mean,
  };
}

function ofLlamaBench(all, row) {
  // A test generates after a prompt of its own, or after that of another test at the same depth.
  const prompts = all.filter((other) => other.model_filename === row.model_filename && other.n_depth === row.n_depth && !other.n_gen);
  return {
    model: row.model_filename.split(/[\\/]/).at(-1),
    tool: 'llama-bench',
    input: row.n_prompt || (prompts.length === 1 ? prompts[0].n_prompt : null),
    output: row.n_gen,
    users: 1,
    depth: row.n_depth,
    total: row.avg_ts,
  };
}

function ofVllm(document) {
  const each = (total) => (document.completed ? Math.round(total / document.completed) : null);
  return {
    model: document.model_id,
    tool: 'vllm-bench serve',
    input: each(document.total_input_tokens),
    output: each(document.total_output_tokens),
    users: document.max_concurrency,
    rate: document.request_rate,
    total: document.output_throughput,
    ttft: document.median_ttft_ms ?? document.mean_ttft_ms,
  };
}

const FIGURES = ['input', 'output', 'users', 'depth', 'rate', 'total', 'ttft'];

/** A row whose fields are numbers or null, and which stands in a table of published ones. */
function complete(row) {
  const figures = Object.fromEntries(FIGURES.map((name) => [name, known(row[name] ?? null)]));
  const {input, output, users, rate, total} = figures;
  const asked = [rate ? `${rate} requests/s` : users && `${users} at once`, input && `${input} in`, output && `${output} out`];
  const each = total !== null && users ? total / users : null;
  return {...row, ...figures, each, prompt: null, runs: 1, recipe: 'yours', load: asked.filter(Boolean).join(', ')};
}

const doublings = (a, b) => Math.abs(Math.log2((a || 1) / (b || 1)));

/** How far two loads are apart, in doublings; another flow is further than all lengths. */
const distance = (mine, other) =>
  100 * ((mine.rate === null) !== (other.rate === null)) +
  3 * doublings(mine.users, other.users) +
  doublings(mine.input + mine.depth, other.input + other.depth) +
  doublings(mine.output, other.output) +
  doublings(mine.rate, other.rate);

const ALIKE = 0.1;
const BESIDE = 3;

/** A row of the reader's beside the published ones of its model under the nearest load: those of the same weights
 * first, then the fastest. */
function section(mine, published, root) {
  const place = make('section', {}, make('h3', {}, `${mine.model}: ${mine.load}`));
  const same = ofModel(mine.model, published);
  // Another tool is further than all lengths.
  const far = (row) => 100 * (mine.tool !== row.tool) + distance(mine, row);
  const near = Math.min(...same.map(far));
  const isOwn = (row) => row.weights_id.toLowerCase() === String(mine.model).toLowerCase();
  const found = same.filter((row) => far(row) <= near + 1e-9).sort((a, b) => isOwn(b) - isOwn(a) || b.total - a.total);
  const [best] = found;
  if (mine.total === null || !best) {
    const figure = mine.total === null ? 'This file has no output throughput.' : `Yours: ${number(mine.total, 1)} tok/s.`;
    place.append(make('p', {}, best ? figure : `${figure} No figure of ${mine.model} is published here.`));
    return place;
  }
  const figures = `Yours: ${number(mine.total, 1)} tok/s, published here: ${number(best.total, 1)}`;
  const alike = distance(mine, best) < ALIKE;
  const share = alike ? ` Yours is ${number((100 * mine.total) / best.total, 0)} % of it.` : '';
  const tool = mine.tool === best.tool ? '' : `, measured with ${best.tool}`;
  const told = `${isOwn(best) ? ' with the same weights,' : ''} under the ${alike ? 'same' : 'nearest'} load (${best.load}${tool}).${share}`;
  const rows = [alike ? {...mine, load: best.load} : mine, ...found.slice(0, BESIDE)];
  const frame = make('div', {className: 'sp-scroll', tabIndex: 0, role: 'region', ariaLabel: figures}, table(rows, root));
  place.append(make('p', {}, make('strong', {}, figures), told), frame);
  return place;
}

const UNKNOWN =
  'is no record of sparkpub and no JSON of llama-benchy, llama-bench or vllm bench serve with a throughput. sparkpub import reads more formats.';

export function start(form) {
  const result = document.querySelector('[data-sp-result]');
  const show = async () => {
    const published = await json(form.dataset.spRaw);
    const model = form.elements.model.value.trim();
    const parts = [];
    for (const file of form.elements.file.files) {
      let rows = [];
      try {
        rows = read(JSON.parse(await file.text())).map(complete);
      } catch {
        // Not JSON: refused below, with the formats that are read.
      }
      parts.push(...rows.map((row) => section(model ? {...row, model} : row, published, form.dataset.spRoot)));
      if (!rows.length) parts.push(make('p', {}, `${file.name} ${UNKNOWN}`));
    }
    result.replaceChildren(...parts);
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', show);
  // A file that was chosen before this script ran, or that the browser kept over a reload.
  if (form.elements.file.files.length) show();
}
