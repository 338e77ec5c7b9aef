// Statistics of times: the median for the typical case, the minimum for the case without other load on the machine.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const summary = (values) => ({ median: median(values), min: Math.min(...values), samples: values.length });

/** Returns the milliseconds of one call, as the mean of `inner` calls where one is too short for the clock. */
export async function time(work, inner = 1) {
  const start = performance.now();
  for (let at = 0; at < inner; at += 1) {
    const waits = work(at);
    if (waits instanceof Promise) await waits;
  }
  return (performance.now() - start) / inner;
}

/** Runs all contenders in turn, round by round, so that the load of the machine affects each of them; each round begins
 *  with another one. Returns {name: {median, min, samples}}. */
export async function race(contenders, { rounds, warm = 2, inner = 1 }) {
  const names = Object.keys(contenders);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -warm; round < rounds; round += 1) {
    for (let at = 0; at < names.length; at += 1) {
      const name = names[(at + round + warm) % names.length];
      const took = await time(contenders[name], inner);
      if (round >= 0) times[name].push(took);
    }
  }
  return Object.fromEntries(names.map((name) => [name, summary(times[name])]));
}
