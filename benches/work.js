// The conversations of all benchmarks: seeded turns of a chat that calls tools, in two wire formats.

const WORDS =
  'the a of to in and is for on with order ticket customer refund status shipped invoice parcel street weather stock price total warehouse open closed please check again today tomorrow number next last week month balance account'.split(
    ' ',
  );

/** A small seeded generator (mulberry32), the same on all platforms. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Messages of one turn: the question, an answer with two calls, two results, the answer's text. */
export const TURN = 5;

/** Turn number `at` as chat messages; about 486 bytes a message. */
export function chatTurn(at) {
  const draw = random(at + 1);
  const text = (length) => {
    const size = Math.floor(length * (0.6 + 0.8 * draw()));
    let out = '';
    while (out.length < size) out += `${WORDS[Math.floor(draw() * WORDS.length)]} `;
    return out.slice(0, size).trimEnd();
  };
  const id = (place) =>
    `call_${(at * 2 + place).toString(36).padStart(8, '0')}${Math.floor(draw() * 1e9).toString(36)}`;
  const rows = (count) =>
    JSON.stringify({
      ok: true,
      rows: Array.from({ length: count }, (_, row) => ({
        id: at * 10 + row,
        name: text(36),
        total: Math.floor(draw() * 1e5) / 100,
        note: text(48),
      })),
    });
  const calls = ['search_orders', 'read_ticket'].map((name, place) => ({
    id: id(place),
    type: 'function',
    function: { name, arguments: JSON.stringify({ query: text(56), limit: 3, page: at % 7 }) },
  }));
  return [
    { role: 'user', content: text(245) },
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'tool', tool_call_id: calls[0].id, content: rows(4) },
    { role: 'tool', tool_call_id: calls[1].id, content: rows(4) },
    { role: 'assistant', content: text(375) },
  ];
}

/** The same turn for Anthropic: four messages. */
export function anthropicTurn(at) {
  const [user, asked, one, two, answer] = chatTurn(at);
  const result = ({ tool_call_id, content }) => ({ type: 'tool_result', tool_use_id: tool_call_id, content });
  return [
    { role: 'user', content: user.content },
    {
      role: 'assistant',
      content: asked.tool_calls.map(({ id, function: f }) => ({
        type: 'tool_use',
        id,
        name: f.name,
        input: JSON.parse(f.arguments),
      })),
    },
    { role: 'user', content: [result(one), result(two)] },
    { role: 'assistant', content: answer.content },
  ];
}

const TURNS = { 'openai-chat': chatTurn, anthropic: anthropicTurn };

/** `turns` turns of a dialect, from turn `from` on. */
export const messagesOf = (dialect, turns, from = 0) =>
  Array.from({ length: turns }, (_, at) => TURNS[dialect](from + at)).flat();

export const PARAMS = {
  'openai-chat': { model: 'gpt-bench', temperature: 0.2 },
  anthropic: { model: 'claude-bench', max_tokens: 1024, stream: true },
};

export const INPUT = 'And what of the parcel that was to come last week?';

export const encoder = new TextEncoder();
export const encode = (value) => encoder.encode(JSON.stringify(value));
