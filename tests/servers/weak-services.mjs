// Services that limit the rate of requests, and services that show old data: what Workers KV does and miniflare does
// not. The calls that arrive are carried out by the real one.

/** Random numbers of a seed. */
export function randomNumbers(seed) {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

/** Wraps methods of an object; everything else is the object's own. */
const wrap = (object, methods) =>
  new Proxy(object, {
    get(target, name) {
      const own = target[name];
      if (typeof own !== 'function') return own;
      const call = (...args) => own.apply(target, args);
      return Object.hasOwn(methods, name) ? (...args) => methods[name](call, ...args) : call;
    },
  });

/**
 * A driver of unstorage or a namespace of Workers KV whose writes are refused as `refuses(key)` says: with the error
 * that it returns. A refused write is not carried out.
 */
export function limited(service, refuses) {
  const write = async (call, key, ...rest) => {
    const error = refuses(key);
    if (error) throw error;
    return call(key, ...rest);
  };
  return wrap(service, { put: write, setItemRaw: write });
}

/** The error of a binding of Workers KV, and of a driver that sends HTTP requests. */
export const kvLimit = () => new Error('KV PUT failed: 429 Too Many Requests');
export const httpLimit = (seconds) =>
  Object.assign(new Error('Too Many Requests'), {
    status: 429,
    response: { status: 429, headers: new Headers(seconds === undefined ? {} : { 'retry-after': String(seconds) }) },
  });

/**
 * A driver of unstorage or a namespace of Workers KV as a place far away sees it: of the newest keys only some, and a
 * key that was looked for too early is not there until `catchUp`.
 */
export function lagging(service, random) {
  const missed = new Set();
  let isCurrent = false;
  // Of each key it is decided once whether this view has it.
  const decided = new Map();
  const sees = (key) => {
    if (isCurrent || key.endsWith('schema')) return true;
    if (!decided.has(key)) decided.set(key, random(3) > 0);
    return decided.get(key) && !missed.has(key);
  };
  const read = async (call, key, ...rest) => {
    if (sees(key)) return call(key, ...rest);
    missed.add(key);
    return null;
  };
  const view = wrap(service, {
    get: read,
    getItemRaw: read,
    getItem: read,
    getKeys: async (call, ...args) => (await call(...args)).filter(sees),
    list: async (call, ...args) => {
      const page = await call(...args);
      return { ...page, keys: page.keys.filter(({ name }) => sees(name)) };
    },
  });
  return {
    view,
    /** Time goes by: what was not seen is decided anew, and misses are remembered. */
    later: () => {
      for (const [key, seen] of decided) if (!seen) decided.delete(key);
    },
    catchUp: () => {
      isCurrent = true;
    },
  };
}

const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];

/**
 * A writer nearby and a reader far away on one session. Returns what the reader saw: how often it was told that its
 * view is stale, and how often it saw less than was written. Throws if it ever saw less than before, or an order of its
 * own.
 */
export async function readFromFarAway(openNear, openFar, far, rounds) {
  const near = await (await openNear()).session('s');
  await near.append(message('0'));
  const store = await openFar();
  let written = 1;
  let reader;
  let known = 0;
  let stale = 0;
  let old = 0;
  const isStale = (error) => {
    if (error.code !== 'maybe_stale') throw error;
    stale += 1;
  };
  for (let round = 0; round < rounds; round += 1) {
    for (let more = 0; more < 3; more += 1) {
      await near.append(message(String(written)));
      written += 1;
    }
    far.later();
    if (!reader) reader = await store.session('s').catch(isStale);
    else await reader.refresh().catch(isStale);
    if (!reader) continue;
    const texts = (await reader.messages({ limit: 10_000 })).items.map(({ parts }) => parts[0].text);
    if (texts.length < known) throw new Error(`the reader saw ${texts.length} messages after ${known}`);
    if (texts.some((text, at) => text !== String(at))) throw new Error(`the reader saw ${texts}`);
    known = texts.length;
    old += known < written ? 1 : 0;
  }
  far.catchUp();
  const last = await (await openFar()).session('s');
  if (reader) await reader.refresh();
  const whole = (await last.messages({ limit: 10_000 })).items.length;
  return {
    written,
    whole,
    known: reader ? (await reader.messages({ limit: 10_000 })).items.length : written,
    stale,
    old,
  };
}
