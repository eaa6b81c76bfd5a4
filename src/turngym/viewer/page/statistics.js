// Success and its 95 % interval over tasks, as the benchmark reports it.

const Z = 1.959963984540054;
const RESAMPLES = 2000;
const MOST_DRAWS = 4e6; // keeps a change of the filters quick where there are many tasks

/** Wilson's interval of a share, without continuity correction. */
function wilson(wins, trials) {
  const share = wins / trials;
  const weight = (Z * Z) / trials;
  const middle = (share + weight / 2) / (1 + weight);
  const half = (Z / (1 + weight)) * Math.sqrt((share * (1 - share)) / trials + weight / (4 * trials));
  return {
    low: wins === 0 ? 0 : Math.max(0, middle - half),
    high: wins === trials ? 1 : Math.min(1, middle + half),
  };
}

/** Success of scored rows with its interval: Wilson over tasks played once, else a bootstrap of whole tasks. */
function success(rows) {
  const tasks = new Map();
  for (const row of rows) {
    if (!tasks.has(row.key)) tasks.set(row.key, [0, 0]);
    const counts = tasks.get(row.key);
    counts[0] += row.solved;
    counts[1] += 1;
  }
  const counts = [...tasks.values()];
  const wins = counts.reduce((sum, [won]) => sum + won, 0);
  const found = { wins, trials: rows.length, tasks: counts.length, share: wins / rows.length };
  if (rows.length === 0) return { ...found, share: NaN };
  if (counts.length === rows.length) return { ...found, ...wilson(wins, rows.length), kind: "Wilson" };
  const same = counts.every(([won, played]) => won / played === counts[0][0] / counts[0][1]);
  if (same) {
    // No spread to resample: some share of tasks, seen in none of these, may do anything from 0 to 1.
    const unseen = wilson(0, counts.length).high;
    const low = found.share - unseen * found.share;
    return { ...found, low, high: found.share + unseen * (1 - found.share), kind: "Wilson over tasks" };
  }
  return { ...found, ...bootstrap(counts), kind: "bootstrap of tasks" };
}

function bootstrap(counts) {
  const random = chance(counts.length);
  const shares = new Float64Array(Math.max(200, Math.min(RESAMPLES, Math.floor(MOST_DRAWS / counts.length))));
  for (let i = 0; i < shares.length; i++) {
    let won = 0;
    let played = 0;
    for (let j = 0; j < counts.length; j++) {
      const task = counts[Math.floor(random() * counts.length)];
      won += task[0];
      played += task[1];
    }
    shares[i] = won / played;
  }
  shares.sort();
  return { low: quantile(shares, 0.025), high: quantile(shares, 0.975) };
}

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/** Numbers in [0, 1) from a seed (mulberry32), so that the same filters always show the same interval. */
function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
