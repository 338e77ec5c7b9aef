// W1: rendering the next request's body, in Node and in a page. The session is in memory, so that only rendering is
// timed.

import { race, summary, time } from './stats.js';
import { INPUT, PARAMS, encode, encoder, messagesOf } from './work.js';

/** The same idea in plain JavaScript: encodes every message once and joins a body from the pieces. */
function fragments(messages) {
  const pieces = messages.map((message) => encode(message));
  const total = pieces.reduce((sum, piece) => sum + piece.length + 1, 0);
  return (params, input) => {
    const head = encoder.encode(`${JSON.stringify(params).slice(0, -1)},"messages":[`);
    const tail = encoder.encode(`${JSON.stringify({ role: 'user', content: input })}]}`);
    const body = new Uint8Array(head.length + total + tail.length);
    body.set(head);
    let at = head.length;
    for (const piece of pieces) {
      body.set(piece, at);
      at += piece.length;
      body[at] = 44; // ","
      at += 1;
    }
    body.set(tail, at);
    return body;
  };
}

const read = (body) => JSON.parse(new TextDecoder().decode(body));

/** Returns the value with sorted keys, for comparison. */
function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  );
}

function check(dialect, rendered, messages, validate) {
  const body = read(rendered.body);
  const same = JSON.stringify(canonical(body.messages.slice(0, -1))) === JSON.stringify(canonical(messages));
  if (!same) throw new Error(`${dialect}: the body is not the history that was appended`);
  if (!JSON.stringify(body.messages.at(-1)).includes(INPUT))
    throw new Error(`${dialect}: the input is not the last message`);
  for (const [key, value] of Object.entries(PARAMS[dialect])) {
    if (body[key] !== value) throw new Error(`${dialect}: the parameter ${key} is missing`);
  }
  const errors = validate(rendered.body, dialect).filter(({ severity }) => severity === 'error');
  if (errors.length) throw new Error(`${dialect}: the body is refused: ${JSON.stringify(errors[0])}`);
}

/** Fewer samples for long sessions, which keeps the bench short. */
const effort = (turns) =>
  turns <= 20
    ? { rounds: 15, inner: 20, cold: 5 }
    : turns <= 200
      ? { rounds: 15, inner: 4, cold: 5 }
      : { rounds: 11, inner: 1, cold: 3 };

async function one({ open, validate }, dialect, turns) {
  const { rounds, inner, cold } = effort(turns);
  const messages = messagesOf(dialect, turns);
  const params = PARAMS[dialect];
  const request = { dialect, params, input: INPUT, replay: { freshness: Infinity } };
  const client = await open({ store: 'memory', name: `w1-${dialect}-${turns}` });
  const result = { dialect, turns, messages: messages.length };

  // The append of all messages at once, and the first body of a session, for which everything is encoded.
  const [append, first] = [[], []];
  let session;
  for (let at = 0; at < cold; at += 1) {
    if (session) await client.deleteSession(`s${at - 1}`);
    session = await client.session(`s${at}`);
    append.push(await time(() => session.append({ messages }, dialect)));
    first.push(await time(() => session.render(request)));
  }
  const rendered = await session.render(request);
  check(dialect, rendered, messages, validate);
  if (rendered.stablePrefix < messages.length)
    throw new Error(`${dialect}: only ${rendered.stablePrefix} of ${messages.length} messages are stable`);
  result.bodyBytes = rendered.body.length;

  const array = [...messages, { role: 'user', content: INPUT }];
  const join = fragments(messages);
  const own = rendered.body;
  const stringify = (of) => encoder.encode(JSON.stringify({ ...params, messages: of }));
  const contenders = {
    F1: () => stringify(array),
    F2: () => join(params, INPUT),
    F0: () => own.slice(),
    render: () => session.render(request),
  };
  result.times = await race(contenders, { rounds, inner });
  result.times.append = summary(append);
  result.times.cold = summary(first);

  if (typeof document !== 'undefined') {
    const post = (body) => new Request('/nowhere', { method: 'POST', body });
    const handed = await race(
      {
        requestF1: () => post(JSON.stringify({ ...params, messages: array })),
        requestRender: async () => post((await session.render(request)).body),
      },
      { rounds, inner },
    );
    Object.assign(result.times, handed);
  }

  // One more turn and the next body, as in a chat.
  const after = { afterTurn: [], F1AfterTurn: [] };
  const grown = [...messages];
  for (let at = 0; at < 5; at += 1) {
    const turn = messagesOf(dialect, 1, turns + at);
    grown.push(...turn);
    await session.append({ messages: turn }, dialect);
    const now = [...grown, { role: 'user', content: INPUT }];
    after.F1AfterTurn.push(await time(() => stringify(now)));
    after.afterTurn.push(await time(() => session.render(request)));
  }
  for (const name of Object.keys(after)) result.times[name] = summary(after[name]);
  await client.close();
  return result;
}

/** Times a render without messages: the call into the wasm and back. */
async function empty({ open }) {
  const client = await open({ store: 'memory', name: 'w1-empty' });
  const session = await client.session('s');
  const request = {
    dialect: 'openai-chat',
    params: PARAMS['openai-chat'],
    input: INPUT,
    replay: { freshness: Infinity },
  };
  const { render } = await race({ render: () => session.render(request) }, { rounds: 15, inner: 50 });
  await client.close();
  return render;
}

/** {empty, rows}. `sizes`: numbers of chat messages. */
export async function w1(rethread, sizes, turn) {
  const rows = [];
  for (const dialect of ['openai-chat', 'anthropic']) {
    for (const size of sizes) rows.push(await one(rethread, dialect, size / turn));
  }
  return { empty: await empty(rethread), rows };
}
