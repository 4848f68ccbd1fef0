// The comparison of two samples as `sparkpub.review.statistics.compare` makes it, for pairs that a reader chooses: Welch's t,
// TOST within a margin, Holm's correction. Tests hold the two against each other.
const ALPHA = 0.05;
const MINIMUM_RUNS = 4;

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The decimal step to which values are rounded, at most 1, and never finer than nine significant digits. */
function resolution(values) {
  const digits = Math.max(...values.map((value) => (String(value).split('.')[1] ?? '').length));
  return Math.max(10 ** -digits, 1e-9 * Math.max(...values.map(Math.abs)));
}

function standardError(values, step) {
  const centre = mean(values);
  const sd = Math.sqrt(values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1));
  const floor = step / Math.sqrt(12);
  return sd >= floor ? sd / Math.sqrt(values.length) : floor;
}

const LANCZOS = [
  76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5,
];

function lnGamma(x) {
  const t = x + 5.5;
  const series = LANCZOS.reduce((sum, value, index) => sum + value / (x + 1 + index), 1.000000000190015);
  return (x + 0.5) * Math.log(t) - t + Math.log((2.5066282746310005 * series) / x);
}

/** The regularised incomplete beta function by Lentz's continued fraction (DLMF 8.17.22). */
function beta(x, a, b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
  const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) / a;
  let [f, c, d] = [1, 1, 0];
  for (let i = 0; i <= 300; i += 1) {
    const m = i >> 1;
    const odd = i % 2 === 1;
    const part = i === 0 ? 1 : odd ? (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
      : (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + part * d || 1e-300);
    c = 1 + part / c || 1e-300;
    f *= c * d;
    if (Math.abs(1 - c * d) < 1e-14) break;
  }
  return front * (f - 1);
}

/** P(T <= t) of Student's t. */
export function studentCdf(t, df) {
  const tail = beta(df / (df + t * t), df / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

function quantile(df) {
  let [low, high] = [0, 1e4];
  for (let i = 0; i < 100; i += 1) {
    const middle = (low + high) / 2;
    if (studentCdf(middle, df) < 1 - ALPHA / 2) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Candidate `b` against baseline `a`; null where n does not carry a figure. */
export function compare(a, b, {margin, unit}) {
  const [meanA, meanB] = [mean(a), mean(b)];
  const difference = meanB - meanA;
  const scaled = unit !== '°C' && meanA > 0;
  const found = {n: [a.length, b.length], means: [meanA, meanB], difference, percent: scaled ? (100 * difference) / meanA : null};
  if (Math.min(a.length, b.length) < 2) return {...found, interval: null, p: null, equivalence: null};
  const step = resolution([...a, ...b]);
  const [va, vb] = [a, b].map((values) => standardError(values, step) ** 2);
  const error = Math.sqrt(va + vb);
  const df = (va + vb) ** 2 / (va ** 2 / (a.length - 1) + vb ** 2 / (b.length - 1));
  const half = quantile(df) * error;
  const limit = (margin / 100) * meanA;
  return {
    ...found,
    interval: [difference - half, difference + half],
    p: 2 * studentCdf(-Math.abs(difference / error), df),
    equivalence: scaled
      ? Math.max(studentCdf((difference - limit) / error, df), studentCdf(-(difference + limit) / error, df))
      : null,
  };
}

/** Holm's adjusted p values in the order given; null stays null. */
export function holm(values) {
  const ranked = values.map((p, index) => [p, index]).filter(([p]) => p !== null).sort(([p], [q]) => p - q);
  const adjusted = values.map(() => null);
  let largest = 0;
  ranked.forEach(([p, index], rank) => {
    largest = Math.max(largest, Math.min(1, p * (ranked.length - rank)));
    adjusted[index] = largest;
  });
  return adjusted;
}

/** Comparisons of one family with their verdicts. */
export function judge(family) {
  const different = holm(family.map(({p}) => p));
  const equal = holm(family.map(({equivalence}) => equivalence));
  return family.map((one, index) => {
    const [p, q] = [different[index], equal[index]];
    let verdict = 'undecided';
    if (Math.min(...one.n) < MINIMUM_RUNS) verdict = 'undecided';
    else if (q !== null && q < ALPHA) verdict = 'equivalent';
    else if (p !== null && p < ALPHA) verdict = one.difference > 0 ? 'higher' : 'lower';
    return {...one, p, equivalence: q, verdict};
  });
}
