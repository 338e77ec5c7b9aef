// Hostile bodies (R32, R63): what `validate`, `repair`, `convert` and `append` take is compared with `JSON.parse` and
// `JSON.stringify` of the same text in the same run, for a body, for one of twice and for one of four times its size.

const LISTS = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  anthropic: 'messages',
  gemini: 'contents',
  mistral: 'messages',
};
export const DIALECTS = Object.keys(LISTS);

const range = (count, make) => Array.from({ length: count }, (_, at) => make(at));
const json = (value) => JSON.stringify(value);

/** How a dialect writes what the bodies consist of: each a function of an index and an id or a text, which returns
 *  items of the list. */
const CHAT = {
  text: (role, text) => [{ role, content: text }],
  calls: (ids) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
    },
  ],
  results: (ids) => ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'r' })),
  parts: (parts) => [{ role: 'user', content: parts }],
};
const FORMS = {
  'openai-chat': CHAT,
  mistral: CHAT,
  'openai-responses': {
    text: (role, text) => [{ role, content: text }],
    calls: (ids) => ids.map((id) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })),
    results: (ids) => ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'r' })),
    parts: (parts) => [{ role: 'user', content: parts }],
  },
  anthropic: {
    text: (role, text) => [{ role, content: text }],
    calls: (ids) => [
      { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'look', input: {} })) },
    ],
    results: (ids) => [
      { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' })) },
    ],
    parts: (parts) => [{ role: 'user', content: parts }],
  },
  gemini: {
    text: (role, text) => [{ role: role === 'assistant' ? 'model' : 'user', parts: [{ text }] }],
    calls: (ids) => [{ role: 'model', parts: ids.map((id) => ({ functionCall: { id, name: 'look', args: {} } })) }],
    results: (ids) => [
      { role: 'user', parts: ids.map((id) => ({ functionResponse: { id, name: 'look', response: {} } })) },
    ],
    parts: (parts) => [{ role: 'user', parts }],
  },
};

/** Repeats a JSON text until it has about `bytes` bytes. */
const repeated = (text) => (form, bytes) =>
  Array(Math.max(1, Math.floor(bytes / (text.length + 1))))
    .fill(text)
    .join(',');
const items = (make) => (form, bytes) => json(make(form, bytes).flat()).slice(1, -1);
const times = (bytes, each) => Math.max(2, Math.floor(bytes / each));
const id = (at) => `call_${at}`;

/** The items of each body, without the brackets of their list. */
export const BODIES = {
  'empty objects': repeated('{}'),
  'empty lists': repeated('[]'),
  numbers: repeated('0'),
  'empty texts': repeated('""'),
  nulls: repeated('null'),
  'lists, nested': (form, bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'lists, nested by 50': repeated('['.repeat(50) + ']'.repeat(50)),
  'objects, nested': (form, bytes) => '{"a":'.repeat(bytes / 6) + '1' + '}'.repeat(bytes / 6),
  'roles alone': repeated('{"role":"user"}'),
  'unknown members': repeated('{"a":1,"b":2}'),
  'unknown roles': repeated('{"role":"wizard","content":"x"}'),
  'a huge text': items((form, bytes) => form.text('user', 'word '.repeat(bytes / 5))),
  'a huge text of escapes': items((form, bytes) => form.text('user', '"\\\n'.repeat(bytes / 6))),
  'white space': (form, bytes) =>
    ' '.repeat(bytes / 2) + items(() => form.text('user', 'hi'))(form) + '\n'.repeat(bytes / 2),
  'messages of the user': items((form, bytes) => range(times(bytes, 35), () => form.text('user', 'hi'))),
  'alternating roles': items((form, bytes) =>
    range(times(bytes, 40), (at) => form.text(at % 2 ? 'assistant' : 'user', 'hi')),
  ),
  'answers alone': items((form, bytes) => range(times(bytes, 40), () => form.text('assistant', 'hi'))),
  'blank texts': items((form, bytes) => range(times(bytes, 40), (at) => form.text(at % 2 ? 'assistant' : 'user', ' '))),
  'system messages': items((form, bytes) =>
    range(times(bytes, 40), (at) => form.text(at % 3 ? 'system' : 'assistant', 'hi')),
  ),
  'a loop of tools': items((form, bytes) =>
    range(times(bytes, 250), (at) =>
      [form.text('user', 'go'), form.calls([id(at)]), form.results([id(at)]), form.text('assistant', 'done')].flat(),
    ),
  ),
  'calls with one id': items((form, bytes) => form.calls(range(times(bytes, 80), () => 'c'))),
  'calls with one id, answered': items((form, bytes) =>
    [form.calls(range(times(bytes, 120), () => 'c')), form.results(range(times(bytes, 120), () => 'c'))].flat(),
  ),
  'calls with one id in as many messages': items((form, bytes) => range(times(bytes, 130), () => form.calls(['c']))),
  'calls with variants of one id': items((form, bytes) =>
    form.calls(range(times(bytes, 80), (at) => (at % 2 ? 'c' : `c_${at}`))),
  ),
  'calls without results': items((form, bytes) => range(times(bytes, 130), (at) => form.calls([id(at)]))),
  'orphan results': items((form, bytes) => form.results(range(times(bytes, 70), id))),
  'orphan results, one id': items((form, bytes) => form.results(range(times(bytes, 70), () => 'c'))),
  'results before calls': items((form, bytes) =>
    [form.results(range(times(bytes, 150), id)), form.calls(range(times(bytes, 150), id))].flat(),
  ),
  'results at the end': items((form, bytes) =>
    [
      range(times(bytes, 250), (at) => [form.calls([id(at)]), form.text('user', 'hi')].flat()).flat(),
      form.results(range(times(bytes, 250), id)),
    ].flat(),
  ),
  'ids in foreign places': items((form, bytes) =>
    [
      form.calls(range(times(bytes, 150), id)),
      range(times(bytes, 150), (at) => ({ ...form.text('user', 'hi')[0], tool_id: id(at) })),
    ].flat(),
  ),
  'parts without a type': items((form, bytes) => form.parts(range(times(bytes, 4), () => ({})))),
  'parts of an unknown type': items((form, bytes) =>
    form.parts(range(times(bytes, 25), () => ({ type: 'wizard-step' }))),
  ),
  'parts of images in answers': items((form, bytes) =>
    range(times(bytes, 100), () => ({
      ...form.parts([{ type: 'image_url', image_url: { url: 'x' } }])[0],
      role: 'assistant',
    })),
  ),
  'cache marks': items((form, bytes) =>
    form.parts(range(times(bytes, 80), () => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }))),
  ),
  'thinking without a signature': items((form, bytes) =>
    range(times(bytes, 80), () => ({ ...form.parts([{ type: 'thinking', thinking: 'x' }])[0], role: 'assistant' })),
  ),
  'reasoning alone': items((form, bytes) =>
    range(times(bytes, 50), (at) => ({ type: 'reasoning', id: `rs_${at}`, summary: [] })),
  ),
  'one member many times': (form, bytes) =>
    `{"role":"user",${Array(times(bytes, 13)).fill('"content":"x"').join(',')}}`,
  'members of many names': (form, bytes) =>
    `{"role":"user","content":"x",${range(times(bytes, 12), (at) => `"m${at}":1`).join(',')}}`,
  'arguments of many members': (form, bytes) =>
    json(form.calls(['c']))
      .slice(1, -1)
      .replace(/\{\}(?!.*\{\})|"\{\}"/, () => `{${range(times(bytes, 12), (at) => `"m${at}":1`).join(',')}}`),
  'parts that only answers have': items((form, bytes) =>
    form.parts(
      range(times(bytes, 60), (at) =>
        at % 2 ? { type: 'text', text: 'x' } : { type: 'tool_use', id: id(at), name: 'n', input: {} },
      ),
    ),
  ),
};

/** Returns the text of a body of about `bytes` bytes. */
export function bodyOf(dialect, name, bytes) {
  return `{"model":"m","${LISTS[dialect]}":[${BODIES[name](FORMS[dialect], bytes)}]}`;
}

/** What is measured, by name: a function of a package, a body and its dialect. */
export const WORK = {
  validate: ({ validate }, text, dialect) => validate(text, dialect),
  repair: ({ repair }, text, dialect) => repair(text, dialect),
  convert: ({ convert }, text, dialect) =>
    convert(text, dialect, dialect === 'anthropic' ? 'openai-chat' : 'anthropic'),
  async append({ open }, text, dialect) {
    const client = await open({ store: 'memory' });
    try {
      const session = await client.session('s');
      await session.append(text, dialect);
    } finally {
      await client.close();
    }
  },
};

async function timed(work, samples) {
  let best = Infinity;
  for (let at = 0; at < samples; at += 1) {
    const start = performance.now();
    try {
      await work();
    } catch (error) {
      if (typeof error?.code !== 'string') throw error; // a refusal is an outcome, too
    }
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

/** `JSON.stringify` recurses: deeply nested values are only parsed. */
function reparsed(text) {
  const value = JSON.parse(text);
  try {
    JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}

/** The limits: times that of `JSON.parse` and `JSON.stringify`, and times per doubling. */
export const MOST = { json: 10, doubling: 2.7 };
/** A time below is too short to compare, in ms. */
const SHORT = 5;

/** [{name, json, took, times, grown, met}], each passed to `tell`. `only`: a part of the names. */
export async function bodies(rethread, { only = '', tell, bytes = 250_000, samples = 2 }) {
  const rows = [];
  for (const name of Object.keys(BODIES)) {
    for (const dialect of DIALECTS) {
      for (const [work, run] of Object.entries(WORK)) {
        const title = `${work} ${dialect}: ${name}`;
        if (!title.includes(only)) continue;
        const [took, reference] = [[], []];
        for (const size of [bytes, bytes * 2, bytes * 4]) {
          const text = bodyOf(dialect, name, size);
          reference.push(await timed(() => reparsed(text), samples));
          took.push(await timed(() => run(rethread, text, dialect), samples));
        }
        const times = took[2] / Math.max(reference[2], 1);
        const grown = took[2] < SHORT ? 0 : Math.sqrt(took[2] / took[0]);
        const row = { name: title, reference, took, times, grown, met: times <= MOST.json && grown <= MOST.doubling };
        rows.push(row);
        tell?.(row);
      }
    }
  }
  return rows;
}
