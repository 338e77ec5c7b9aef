// Growth (R63): the cost of what a model, a server, a user or an import controls is linear in its size. Each case is
// timed with N and with 2N.

import { encode, encoder } from './work.js';

const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini'];
const REPLAY = { freshness: Infinity };
const line = (data) => `data: ${JSON.stringify(data)}\n\n`;
const range = (count, make) => Array.from({ length: count }, (_, at) => make(at));

const chatCall = (at) => ({ id: `call_${at}`, type: 'function', function: { name: 'look', arguments: `{"n":${at}}` } });
const chatAnswer = (message) =>
  encode({
    id: 'r',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  });
const chatChunk = (delta, finish_reason = null) =>
  line({ id: 'r', model: 'm', choices: [{ index: 0, delta, finish_reason }] });

/** One question, one answer with `count` calls, their results. */
function bodyOf(dialect, count, answered = true) {
  const results = answered ? count : 0;
  switch (dialect) {
    case 'openai-chat':
      return {
        model: 'm',
        messages: [
          { role: 'user', content: 'go' },
          { role: 'assistant', content: null, tool_calls: range(count, chatCall) },
          ...range(results, (at) => ({ role: 'tool', tool_call_id: `call_${at}`, content: `r${at}` })),
        ],
      };
    case 'openai-responses':
      return {
        model: 'm',
        input: [
          { role: 'user', content: 'go' },
          ...range(count, (at) => ({
            type: 'function_call',
            call_id: `call_${at}`,
            name: 'look',
            arguments: `{"n":${at}}`,
          })),
          ...range(results, (at) => ({ type: 'function_call_output', call_id: `call_${at}`, output: `r${at}` })),
        ],
      };
    case 'anthropic':
      return {
        model: 'm',
        max_tokens: 1,
        messages: [
          { role: 'user', content: 'go' },
          {
            role: 'assistant',
            content: range(count, (at) => ({ type: 'tool_use', id: `call_${at}`, name: 'look', input: { n: at } })),
          },
          ...(answered
            ? [
                {
                  role: 'user',
                  content: range(count, (at) => ({
                    type: 'tool_result',
                    tool_use_id: `call_${at}`,
                    content: `r${at}`,
                  })),
                },
              ]
            : []),
        ],
      };
    default:
      return {
        contents: [
          { role: 'user', parts: [{ text: 'go' }] },
          { role: 'model', parts: range(count, (at) => ({ functionCall: { name: 'look', args: { n: at } } })) },
          ...(answered
            ? [
                {
                  role: 'user',
                  parts: range(count, (at) => ({ functionResponse: { name: 'look', response: { n: at } } })),
                },
              ]
            : []),
        ],
      };
  }
}

const LISTS = { 'openai-responses': 'input', gemini: 'contents' };
const listName = (dialect) => LISTS[dialect] ?? 'messages';

/** The list of a body, or a part of it, as `append` takes it. */
const listOf = (dialect, body, from = 0) => ({ [listName(dialect)]: body[listName(dialect)].slice(from) });

/** Feeds each text separately, and checks the result. */
function assembled(rethread, dialect, pieces, check) {
  const bytes = pieces.map((piece) => encoder.encode(piece));
  return () => {
    const assembler = new rethread.StreamAssembler(dialect);
    for (const piece of bytes) assembler.push(piece);
    const answer = assembler.finish();
    if (!check(answer))
      throw new Error(`${dialect}: the stream has another result: ${JSON.stringify(answer).slice(0, 300)}`);
  };
}

const callCount = (count) => (answer) => answer.toolCalls.length === count;

/** A `fetch` that answers with these bodies, one per call. */
function answersWith(...bodies) {
  let at = 0;
  return async () => {
    const body = bodies[at];
    at += 1;
    return typeof body === 'function'
      ? body()
      : new Response(body, { headers: { 'content-type': 'application/json' } });
  };
}

function streamed(pieces) {
  return () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          for (const piece of pieces) controller.enqueue(encoder.encode(piece));
          controller.close();
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    );
}

const LOOK = { parameters: { type: 'object', properties: {} }, execute: ({ n }) => ({ n }) };
const provider = (stream) => ({ dialect: 'openai-chat', url: 'http://localhost/', params: { model: 'm' }, stream });

async function withSession({ open }, work) {
  const client = await open({ store: 'memory', replay: REPLAY });
  try {
    await work(await client.session('s'), client);
  } finally {
    await client.close();
  }
}

async function driven(
  rethread,
  session,
  { stream = false, tools = { look: LOOK }, bodies, turns },
  { events = false, ...options } = {},
) {
  const run = await session.run({ input: 'go', provider: provider(stream), tools });
  const whole = rethread.drive(run, { ...options, fetch: answersWith(...bodies) });
  if (events) for await (const event of whole) void event;
  const result = await whole.result;
  if (result.status !== 'finished' || result.turns !== turns)
    throw new Error(`the run came to ${JSON.stringify(result).slice(0, 300)}`);
}

const DONE = chatAnswer({ content: 'Done.' });
const called = (count) => chatAnswer({ content: null, tool_calls: range(count, chatCall) });

/** A session that contains `messages`; creating it is not timed. */
async function prepared({ open }, dialect, messages) {
  const client = await open({ store: 'memory', replay: REPLAY });
  const session = await client.session('s');
  await session.append({ messages }, dialect);
  return { client, session };
}

/** The cases: their sizes, and a function that prepares the timed work of one size. */
export const CASES = [
  {
    name: 'parallel tools through drive',
    size: 1000,
    make: (rethread, count) => () =>
      withSession(rethread, (session) => driven(rethread, session, { bodies: [called(count), DONE], turns: 2 })),
  },
  {
    name: 'parallel tools, four at once, events read',
    size: 1000,
    make: (rethread, count) => () =>
      withSession(rethread, (session) =>
        driven(rethread, session, { bodies: [called(count), DONE], turns: 2 }, { toolConcurrency: 4, events: true }),
      ),
  },
  {
    name: 'parallel tools with persist',
    size: 1000,
    make: (rethread, count) => () =>
      withSession(rethread, (session) =>
        driven(rethread, session, {
          bodies: [called(count), DONE],
          turns: 2,
          tools: { look: { ...LOOK, persist: ({ arguments: given }) => ({ arguments: given }) } },
        }),
      ),
  },
  {
    name: 'calls of a tool that is not there',
    size: 2000,
    make: (rethread, count) => () =>
      withSession(rethread, (session) =>
        driven(rethread, session, { bodies: [called(count), DONE], turns: 2, tools: {} }),
      ),
  },
  {
    name: 'parallel tools, a view repainted',
    size: 250,
    make: (rethread, count) => () =>
      withSession(rethread, async (session) => {
        const view = session.view();
        view.subscribe(() => view.getSnapshot());
        await driven(rethread, session, { bodies: [called(count), DONE], turns: 2 });
      }),
  },
  {
    name: 'rounds of one call each',
    size: 100,
    make: (rethread, count) => () =>
      withSession(rethread, async (session) => {
        const run = await session.run({
          input: 'go',
          provider: provider(false),
          tools: { look: LOOK },
          maxTurns: count + 1,
        });
        const round = range(count, (at) => chatAnswer({ content: null, tool_calls: [chatCall(at)] }));
        const { status } = await rethread.drive(run, { fetch: answersWith(...round, DONE) }).result;
        if (status !== 'finished') throw new Error(`the run is ${status}`);
      }),
    // Each request contains all earlier rounds, so the bytes of all requests together grow with the square in any
    // implementation.
    most: 4.5,
  },
  {
    name: 'text in small pieces, a view repainted',
    size: 2000,
    make: (rethread, count) => {
      const pieces = [
        ...range(count, (at) => chatChunk({ content: `word ${at} of the answer ` })),
        chatChunk({}, 'stop'),
        'data: [DONE]\n\n',
      ];
      return () =>
        withSession(rethread, async (session) => {
          const view = session.view();
          let painted = 0;
          view.subscribe(() => {
            painted += view.getSnapshot().messages.length;
          });
          await driven(rethread, session, { stream: true, bodies: [streamed(pieces)], turns: 1 });
          if (painted < count) throw new Error('the view was not repainted');
        });
    },
  },
  ...['openai-responses', 'openai-chat', 'anthropic', 'gemini', 'mistral'].map((dialect) => ({
    name: `newlines before a stream, one by one: ${dialect}`,
    size: 20_000,
    make: (rethread, count) =>
      assembled(
        rethread,
        dialect,
        [...range(count, () => '\n'), 'data: {}\n\n'],
        (answer) => answer.toolCalls.length === 0,
      ),
  })),
  {
    name: 'responses calls named by item_id',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-responses',
        [
          line({ type: 'response.created', response: { id: 'resp_1', model: 'm' } }),
          ...range(count, (at) =>
            line({
              type: 'response.output_item.added',
              item: { id: `fc_${at}`, type: 'function_call', call_id: `call_${at}`, name: 'look', arguments: '' },
            }),
          ),
          ...range(count, (at) =>
            line({ type: 'response.function_call_arguments.delta', item_id: `fc_${at}`, delta: `{"n":${at}}` }),
          ),
          ...range(count, (at) =>
            line({ type: 'response.function_call_arguments.done', item_id: `fc_${at}`, arguments: `{"n":${at}}` }),
          ),
          ...range(count, (at) =>
            line({
              type: 'response.output_item.done',
              item: {
                id: `fc_${at}`,
                type: 'function_call',
                call_id: `call_${at}`,
                name: 'look',
                arguments: `{"n":${at}}`,
              },
            }),
          ),
          line({ type: 'response.completed', response: { id: 'resp_1', model: 'm', status: 'completed', output: [] } }),
        ],
        callCount(count),
      ),
  },
  {
    name: 'responses calls named by output_index',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-responses',
        [
          ...range(count, (at) =>
            line({
              type: 'response.output_item.added',
              output_index: at,
              item: { id: `fc_${at}`, type: 'function_call', call_id: `call_${at}`, name: 'look', arguments: '' },
            }),
          ),
          ...range(count, (at) =>
            line({
              type: 'response.function_call_arguments.delta',
              output_index: at,
              item_id: `fc_${at}`,
              delta: `{"n":${at}}`,
            }),
          ),
          ...range(count, (at) =>
            line({
              type: 'response.output_item.done',
              output_index: at,
              item: {
                id: `fc_${at}`,
                type: 'function_call',
                call_id: `call_${at}`,
                name: 'look',
                arguments: `{"n":${at}}`,
              },
            }),
          ),
          line({
            type: 'response.completed',
            response: {
              id: 'resp_1',
              model: 'm',
              status: 'completed',
              output: range(count, (at) => ({
                id: `fc_${at}`,
                type: 'function_call',
                call_id: `call_${at}`,
                name: 'look',
                arguments: `{"n":${at}}`,
              })),
            },
          }),
        ],
        callCount(count),
      ),
  },
  {
    name: 'responses parts of one message',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-responses',
        [
          line({
            type: 'response.output_item.added',
            output_index: 0,
            item: { id: 'msg_1', type: 'message', role: 'assistant', content: [] },
          }),
          ...range(count, (at) =>
            line({
              type: 'response.output_text.delta',
              output_index: 0,
              item_id: 'msg_1',
              content_index: at,
              delta: 'a ',
            }),
          ),
          ...range(count, (at) =>
            line({
              type: 'response.output_text.delta',
              output_index: 0,
              item_id: 'msg_1',
              content_index: at,
              delta: 'b ',
            }),
          ),
          line({ type: 'response.completed', response: { id: 'resp_1', model: 'm', status: 'completed' } }),
        ],
        ({ text }) => text.length === count * 4,
      ),
  },
  {
    name: 'streamed chat calls, interleaved',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-chat',
        [
          ...range(count, (at) =>
            chatChunk({
              tool_calls: [
                { index: at, id: `call_${at}`, type: 'function', function: { name: 'look', arguments: '' } },
              ],
            }),
          ),
          ...range(count, (at) => chatChunk({ tool_calls: [{ index: at, function: { arguments: `{"n":${at}}` } }] })),
          chatChunk({}, 'tool_calls'),
          'data: [DONE]\n\n',
        ],
        callCount(count),
      ),
  },
  {
    name: 'streamed chat calls, by id without an index',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-chat',
        [
          ...range(count, (at) =>
            chatChunk({
              tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'look', arguments: '' } }],
            }),
          ),
          ...range(count, (at) =>
            chatChunk({ tool_calls: [{ id: `call_${at}`, function: { arguments: `{"n":${at}}` } }] }),
          ),
          chatChunk({}, 'tool_calls'),
          'data: [DONE]\n\n',
        ],
        callCount(count),
      ),
  },
  {
    name: 'chat call arguments that look whole at each piece',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'openai-chat',
        [
          chatChunk({
            tool_calls: [
              { index: 0, id: 'call_0', type: 'function', function: { name: 'look', arguments: '{"list":[' } },
            ],
          }),
          ...range(count, (at) =>
            chatChunk({
              tool_calls: [{ index: 0, id: at % 2 ? 'x' : 'y', function: { arguments: `${at ? ',' : ''}{}` } }],
            }),
          ),
          chatChunk({ tool_calls: [{ index: 0, function: { arguments: ']}' } }] }),
          chatChunk({}, 'tool_calls'),
          'data: [DONE]\n\n',
        ],
        ({ toolCalls }) => toolCalls.length === 1 && toolCalls[0].arguments.length > count,
      ),
  },
  {
    name: 'anthropic blocks of one answer',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'anthropic',
        [
          `event: message_start\n${line({ type: 'message_start', message: { id: 'r', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } } })}`,
          ...range(
            count,
            (at) =>
              `event: content_block_start\n${line({ type: 'content_block_start', index: at, content_block: { type: 'tool_use', id: `call_${at}`, name: 'look', input: {} } })}`,
          ),
          ...range(
            count,
            (at) =>
              `event: content_block_delta\n${line({ type: 'content_block_delta', index: at, delta: { type: 'input_json_delta', partial_json: `{"n":${at}}` } })}`,
          ),
          ...range(count, (at) => `event: content_block_stop\n${line({ type: 'content_block_stop', index: at })}`),
          `event: message_delta\n${line({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } })}`,
          `event: message_stop\n${line({ type: 'message_stop' })}`,
        ],
        callCount(count),
      ),
  },
  {
    name: 'anthropic calls of the server',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'anthropic',
        [
          `event: message_start\n${line({ type: 'message_start', message: { id: 'r', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } } })}`,
          ...range(
            count,
            (at) =>
              `event: content_block_start\n${line({ type: 'content_block_start', index: at, content_block: { type: 'server_tool_use', id: `srv_${at}`, name: 'web_search', input: {} } })}`,
          ),
          `event: message_delta\n${line({ type: 'message_delta', delta: { stop_reason: 'pause_turn' }, usage: { output_tokens: 5 } })}`,
          `event: message_stop\n${line({ type: 'message_stop' })}`,
        ],
        callCount(0),
      ),
  },
  {
    name: 'gemini calls in a stream',
    size: 4000,
    make: (rethread, count) =>
      assembled(
        rethread,
        'gemini',
        [
          ...range(count, (at) =>
            line({
              candidates: [
                { content: { role: 'model', parts: [{ functionCall: { name: 'look', args: { n: at } } }] } },
              ],
            }),
          ),
          line({ candidates: [{ finishReason: 'STOP' }] }),
        ],
        callCount(count),
      ),
  },
  ...DIALECTS.map((dialect) => ({
    name: `append of parallel calls and results: ${dialect}`,
    size: 4000,
    make: (rethread, count) => {
      const given = listOf(dialect, bodyOf(dialect, count));
      return () => withSession(rethread, (session) => session.append(given, dialect));
    },
  })),
  {
    name: 'append of calls that share one id',
    size: 4000,
    make: (rethread, count) => {
      const messages = [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: range(count, () => chatCall(0)) },
        ...range(count, (at) => ({ role: 'tool', tool_call_id: 'call_0', content: `r${at}` })),
      ];
      return () => withSession(rethread, (session) => session.append({ messages }, 'openai-chat'));
    },
  },
  ...DIALECTS.map((dialect) => ({
    name: `results that come later, one append: ${dialect}`,
    size: 4000,
    make: (rethread, count) => {
      const open = listOf(dialect, bodyOf(dialect, count, false));
      const results = listOf(dialect, bodyOf(dialect, count), open[listName(dialect)].length);
      return () =>
        withSession(rethread, async (session) => {
          await session.append(open, dialect);
          await session.append(results, dialect);
        });
    },
  })),
  ...DIALECTS.flatMap((from) =>
    DIALECTS.filter((to) => to !== from).map((to) => ({
      name: `convert of parallel calls: ${from} to ${to}`,
      size: 4000,
      make: (rethread, count) => {
        const body = encode(bodyOf(from, count));
        return () => {
          rethread.convert(body, from, to);
        };
      },
    })),
  ),
  ...DIALECTS.flatMap((dialect) =>
    [true, false].map((answered) => ({
      name: `repair of parallel calls, ${answered ? 'answered' : 'open'}: ${dialect}`,
      size: 4000,
      make: (rethread, count) => {
        const body = encode(bodyOf(dialect, count, answered));
        return () => {
          rethread.repair(body, dialect);
        };
      },
    })),
  ),
  ...DIALECTS.map((dialect) => ({
    name: `render of parallel calls: ${dialect}`,
    size: 4000,
    apart: true,
    make: async (rethread, count) => {
      const { client, session } = await prepared(
        rethread,
        'openai-chat',
        listOf('openai-chat', bodyOf('openai-chat', count)).messages,
      );
      return {
        work: () => session.render({ dialect, params: { model: 'm', max_tokens: 1 }, input: 'more', replay: REPLAY }),
        close: () => client.close(),
      };
    },
  })),
  {
    name: 'invocations with payload, page by page',
    size: 4000,
    apart: true,
    make: async (rethread, count) => {
      const { client, session } = await prepared(
        rethread,
        'openai-chat',
        listOf('openai-chat', bodyOf('openai-chat', count)).messages,
      );
      const work = async () => {
        let [cursor, seen] = [undefined, 0];
        do {
          const page = await session.invocations({ payload: true, limit: 100, cursor });
          seen += page.items.filter(({ result }) => result).length;
          cursor = page.cursor;
        } while (cursor);
        if (seen !== count) throw new Error(`${seen} of ${count} calls were read`);
      };
      return { work, close: () => client.close() };
    },
  },
  {
    name: 'older() to the end',
    size: 4000,
    apart: true,
    once: true,
    make: async (rethread, count) => {
      const messages = range(count, (at) => ({ role: at % 2 ? 'assistant' : 'user', content: `message ${at}` }));
      const { client, session } = await prepared(rethread, 'openai-chat', messages);
      const view = session.view();
      const work = async () => {
        view.getSnapshot();
        while (await view.older()) view.getSnapshot();
        if (view.getSnapshot().messages.length !== count) throw new Error('not all messages are shown');
      };
      return { work, close: () => client.close() };
    },
  },
];

/** Returns the shortest of several runs of one size, in ms. */
async function shortest({ make, apart, once }, rethread, size, samples) {
  let best = Infinity;
  let made = null;
  for (let at = 0; at < samples; at += 1) {
    if (!made || once) {
      await made?.close?.();
      made = await make(rethread, size);
      if (!apart) made = { work: made };
    }
    const start = performance.now();
    await made.work();
    best = Math.min(best, performance.now() - start);
  }
  await made.close?.();
  return best;
}

export const MOST = 2.5;

/** [{name, size, one, two, ratio, most, met}], each passed to `tell` when it is done. `only`: a part of the names;
 *  `longest`: a doubling stops there. */
export async function growth(rethread, { only, tell, samples = 3 }) {
  const rows = [];
  for (const one of CASES.filter(({ name }) => !only || name.includes(only))) {
    const most = one.most ?? MOST;
    let row;
    // The load of the machine may slow down one of the two: a ratio above the limit is measured again.
    for (let tries = 0; tries < 3 && !row?.met; tries += 1) {
      const small = await shortest(one, rethread, one.size, samples);
      const large = await shortest(one, rethread, one.size * 2, samples);
      row = {
        name: one.name,
        size: one.size,
        one: small,
        two: large,
        ratio: large / small,
        most,
        met: large / small <= most,
      };
    }
    rows.push(row);
    tell?.(row);
  }
  return rows;
}
