// r56 r63: a view that is read after each piece of an answer costs what the pieces cost, not what the answer has so far
// each time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const line = (data) => `data: ${JSON.stringify(data)}\n\n`;
const range = (count, make) => Array.from({ length: count }, (_, at) => make(at));
const chat = (delta, finish_reason = null) =>
  line({ id: 'r', model: 'm', choices: [{ index: 0, delta, finish_reason }] });
const claude = (data) => `event: ${data.type}\n${line(data)}`;
const part = (fields) => line({ candidates: [{ index: 0, content: { role: 'model', parts: [fields] } }] });
const more = (at) => ` piece ${String(at).padStart(5, '0')} "ü" 🙂`;

/** The events of an answer with thinking, a text, and arguments of a call, each in `count` pieces. */
const STREAMS = {
  'openai-chat': (count) => [
    ...range(count, (at) => chat({ reasoning_content: more(at) })),
    ...range(count, (at) => chat({ content: more(at) })),
    chat({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'look', arguments: '{"a":"' } }] }),
    ...range(count, (at) => chat({ tool_calls: [{ index: 0, function: { arguments: `piece ${at} ` } }] })),
    chat({ tool_calls: [{ index: 0, function: { arguments: '"}' } }] }),
    chat({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ],
  mistral: (count) => [
    ...range(count, (at) => chat({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: more(at) }] }] })),
    ...range(count, (at) => chat({ content: more(at) })),
    chat(
      {
        tool_calls: [{ index: 0, id: 'abcdefghi', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }],
      },
      'tool_calls',
    ),
    'data: [DONE]\n\n',
  ],
  anthropic: (count) => [
    claude({
      type: 'message_start',
      message: { id: 'r', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    }),
    claude({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    ...range(count, (at) =>
      claude({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: more(at) } }),
    ),
    claude({ type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } }),
    claude({ type: 'content_block_stop', index: 0 }),
    claude({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
    ...range(count, (at) =>
      claude({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: more(at) } }),
    ),
    claude({ type: 'content_block_stop', index: 1 }),
    claude({
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'c', name: 'look', input: {} },
    }),
    claude({ type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":"' } }),
    ...range(count, (at) =>
      claude({
        type: 'content_block_delta',
        index: 2,
        delta: { type: 'input_json_delta', partial_json: `piece ${at} ` },
      }),
    ),
    claude({ type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '"}' } }),
    claude({ type: 'content_block_stop', index: 2 }),
    claude({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
    claude({ type: 'message_stop' }),
  ],
  gemini: (count) => [
    ...range(count, (at) => part({ text: more(at), thought: true })),
    ...range(count, (at) => part({ text: more(at) })),
    part({ functionCall: { name: 'look', args: { a: 1 } } }),
    line({ candidates: [{ index: 0, finishReason: 'STOP' }] }),
  ],
  'openai-responses': (count) => [
    line({ type: 'response.created', response: { id: 'resp_1', model: 'm' } }),
    line({ type: 'response.output_item.added', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } }),
    ...range(count, (at) =>
      line({
        type: 'response.reasoning_summary_text.delta',
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: more(at),
      }),
    ),
    line({
      type: 'response.output_item.added',
      output_index: 1,
      item: { id: 'msg_1', type: 'message', role: 'assistant', phase: 'commentary', content: [] },
    }),
    ...range(count, (at) =>
      line({
        type: 'response.output_text.delta',
        item_id: 'msg_1',
        output_index: 1,
        content_index: 0,
        delta: more(at),
      }),
    ),
    line({
      type: 'response.output_item.added',
      output_index: 2,
      item: { id: 'fc_1', type: 'function_call', call_id: 'c', name: 'look', arguments: '' },
    }),
    ...range(count, (at) =>
      line({
        type: 'response.function_call_arguments.delta',
        item_id: 'fc_1',
        output_index: 2,
        delta: at ? `piece ${at} ` : '{"a":"',
      }),
    ),
    line({ type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 2, delta: '"}' }),
    line({
      type: 'response.function_call_arguments.done',
      item_id: 'fc_1',
      output_index: 2,
      arguments: `{"a":"${range(count - 1, (at) => `piece ${at + 1} `).join('')}"}`,
    }),
    line({
      type: 'response.output_item.done',
      output_index: 2,
      item: { id: 'fc_1', type: 'function_call', call_id: 'c', name: 'look', arguments: '{"a":"x"}' },
    }),
    line({ type: 'response.completed', response: { id: 'resp_1', model: 'm', status: 'completed' } }),
  ],
};

/** Counts what crosses from the wasm while `work` runs: bytes of text, and objects that are made of it. */
function crossing(counts, work) {
  const { decode } = TextDecoder.prototype;
  const { parse } = JSON;
  TextDecoder.prototype.decode = function counted(bytes, ...rest) {
    counts.bytes += bytes?.byteLength ?? 0;
    return decode.call(this, bytes, ...rest);
  };
  JSON.parse = (text, reviver) =>
    parse(text, (key, value) => {
      counts.objects += typeof value === 'object' && value ? 1 : 0;
      return reviver ? reviver(key, value) : value;
    });
  try {
    return work();
  } finally {
    TextDecoder.prototype.decode = decode;
    JSON.parse = parse;
  }
}

/** Runs an answer of `count` pieces of each kind with a view that is read at each change; returns what was counted, and
 *  the last answer. */
async function shown(dialect, count, { onSnapshot = () => {} } = {}) {
  const client = await open({ store: 'memory' });
  try {
    const session = await client.session('s');
    const view = session.view();
    const counts = { bytes: 0, objects: 0, snapshots: 0 };
    let streaming;
    view.subscribe(() => {
      const snapshot = crossing(counts, () => view.getSnapshot());
      counts.snapshots += 1;
      const last = snapshot.messages.at(-1);
      if (last?.status === 'streaming') streaming = last;
      onSnapshot(snapshot);
    });
    const pieces = STREAMS[dialect](count).map((text) => new TextEncoder().encode(text));
    const answer = () =>
      new Response(
        new ReadableStream({
          start(controller) {
            pieces.forEach((piece) => controller.enqueue(piece));
            controller.close();
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    const run = await session.run({
      input: 'go',
      provider: { dialect, url: 'http://localhost/', params: { model: 'm' }, stream: true },
      maxTurns: 1,
      tools: { look: { parameters: { type: 'object', properties: {} }, execute: () => 1 } },
    });
    await drive(run, { fetch: async () => answer() }).result;
    return { counts, streaming, ended: view.getSnapshot() };
  } finally {
    await client.close();
  }
}

const WHOLE = (count) => range(count, more).join('');

for (const dialect of Object.keys(STREAMS)) {
  test(`r56 r63 ${dialect}: what crosses for a view that is read after each piece is linear in the pieces`, async () => {
    const { counts: one, streaming } = await shown(dialect, 200);
    const { counts: two } = await shown(dialect, 400);
    assert.ok(one.snapshots >= 400, `${one.snapshots} snapshots`);
    const kinds = streaming.parts.map(({ type }) => type);
    assert.deepEqual(kinds, ['reasoning', 'text'], 'thinking and text are shown as they come');
    for (const { text } of streaming.parts) assert.equal(text, WHOLE(200));
    for (const kind of ['bytes', 'objects']) {
      assert.ok(
        two[kind] <= one[kind] * 2.2,
        `${kind}: ${one[kind]} for 200 pieces of each kind, ${two[kind]} for 400`,
      );
    }
    // One snapshot has the frame of a message and the piece, whatever the answer has so far.
    assert.ok(two.bytes / two.snapshots < 1500, `${two.bytes / two.snapshots} bytes a snapshot`);
  });
}

test('r56 a part that does not change is the same object while another one grows, and no shown object changes', async () => {
  const seen = [];
  await shown('anthropic', 50, {
    onSnapshot({ messages }) {
      const answer = messages.at(-1);
      if (answer?.status === 'streaming') seen.push([answer, JSON.stringify(answer)]);
    },
  });
  for (const [answer, text] of seen) assert.equal(JSON.stringify(answer), text);
  const withText = seen.map(([answer]) => answer).filter(({ parts }) => parts.length === 2);
  assert.ok(withText.length >= 50);
  assert.equal(new Set(withText.map(({ parts }) => parts[0])).size, 1, 'the thinking is one object');
  assert.equal(new Set(withText.map(({ parts }) => parts[1])).size, 50, 'the text is another one after each piece');
});

test('r73 the phase of a text is shown while the text is streamed', async () => {
  const { streaming } = await shown('openai-responses', 2);
  assert.deepEqual(streaming.parts[1], { type: 'text', text: WHOLE(2), phase: 'commentary' });
});

test('r56 r63 results of parallel calls: each makes the part of its call again, and no other', async () => {
  const measure = async (count) => {
    const client = await open({ store: 'memory' });
    const session = await client.session('s');
    const view = session.view();
    const counts = { bytes: 0, objects: 0 };
    view.subscribe(() => crossing(counts, () => view.getSnapshot()));
    const calls = range(count, (at) => ({
      id: `call_${at}`,
      type: 'function',
      function: { name: 'look', arguments: '{}' },
    }));
    const bodies = [{ content: null, tool_calls: calls }, { content: 'Done.' }].map((message) =>
      JSON.stringify({
        id: 'r',
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
      }),
    );
    const run = await session.run({
      input: 'go',
      provider: { dialect: 'openai-chat', url: 'http://localhost/', params: { model: 'm' } },
      tools: { look: { parameters: { type: 'object', properties: {} }, execute: () => 'seen' } },
    });
    const { status } = await drive(run, {
      fetch: async () => new Response(bodies.shift(), { headers: { 'content-type': 'application/json' } }),
    }).result;
    assert.equal(status, 'finished');
    const results = view.getSnapshot().messages[1].parts.map(({ call }) => call.result.content);
    assert.deepEqual(
      results,
      range(count, () => 'seen'),
    );
    await client.close();
    return counts;
  };
  const [one, two] = [await measure(60), await measure(120)];
  for (const kind of ['bytes', 'objects'])
    assert.ok(two[kind] <= one[kind] * 2.2, `${kind}: ${one[kind]}, ${two[kind]}`);
});
