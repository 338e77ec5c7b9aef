// The control endpoints of a lane: script, records, tool counters, gates and holds.

import { resultOf } from './tool.mjs';

const list = (v) => (Array.isArray(v) ? v : []);

function setOptions(lane, body) {
  for (const k of ['delayMs', 'chunkBytes', 'binding']) if (body[k] !== undefined) lane.options[k] = body[k];
}

async function tool(lane, body, { signal }) {
  if (typeof body.name !== 'string') return { status: 400, json: { error: 'name is missing' } };
  const entry = lane.toolEntry(body);
  const at = { kind: 'tool', ...entry, ordinal: entry.count };
  await lane.holdPoint(at, signal);
  // Nobody is there any more to take the result: say so in the record.
  if (signal.aborted) entry.aborted = true;
  const { count, countForCall, seq } = entry;
  return { json: { count, countForCall, seq, result: body.result ?? resultOf(entry.name, entry.arguments) } };
}

const POST = {
  script(lane, body) {
    if (body.steps !== undefined && !Array.isArray(body.steps))
      return { status: 400, json: { error: 'steps is a list' } };
    lane.script = body.append ? [...lane.script, ...list(body.steps)] : [...list(body.steps)];
    if (body.then !== undefined) lane.then = body.then;
    setOptions(lane, body);
    return { json: { steps: lane.script.length, then: lane.then } };
  },
  options(lane, body) {
    setOptions(lane, body);
    return { json: lane.options };
  },
  tool,
  service(lane, { days = 0, minutes = 0 }) {
    lane.service.advance(days);
    lane.threads.advance(days * 24 * 60 + minutes);
    lane.background.advance(days * 24 * 60 + minutes);
    return { json: lane.service };
  },
  cuts(lane, { cuts }) {
    lane.cuts = list(cuts);
    return { json: { cuts: lane.cuts.length } };
  },
  hold: (lane, body) =>
    body.phase ? { json: { holds: lane.hold(body) } } : { status: 400, json: { error: 'phase is missing' } },
  release: (lane, body) => ({ json: { released: lane.release(body) } }),
};

const GET = {
  requests: (lane) => ({ json: lane.requests }),
  conversations: (lane) => ({ json: lane.service.toJSON().conversations }),
  fetched: (lane) => ({ json: lane.fetched }),
  tools: (lane) => ({ json: lane.tools }),
  waiting: (lane) => ({ json: lane.listWaiting() }),
  service: (lane) => ({ json: lane.service }),
  threads: (lane) => ({ json: lane.threads }),
  script: (lane) => ({ json: { steps: lane.script, then: lane.then } }),
};

/** {status?, json} for a control path such as "script" or "gate/NAME/open". */
export async function control({ lane, reset, method, path, body, signal }) {
  if (method === 'POST' && path === 'reset') {
    reset();
    return { json: { ok: true } };
  }
  const gate = /^gate\/([^/]+)\/(open|close)$/.exec(path);
  if (method === 'POST' && gate) {
    const name = decodeURIComponent(gate[1]);
    if (gate[2] === 'open') return { json: { released: lane.openGate(name) } };
    lane.gates.delete(name);
    return { json: { released: 0 } };
  }
  const table = method === 'POST' ? POST : method === 'GET' ? GET : {};
  if (!Object.hasOwn(table, path)) return { status: 404, json: { error: `no control endpoint ${method} ${path}` } };
  return table[path](lane, body ?? {}, { signal });
}
