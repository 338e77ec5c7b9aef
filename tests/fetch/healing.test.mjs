// r74: a request that the provider refused with a known error is repaired and sent once more.

import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import OpenAI4 from 'openai-4';
import { heal, repair } from '../../js/entry/formats-node.js';
import { repairing } from '../../js/entry/fetch-node.js';
import { REFUSAL_STATUSES } from '../../js/dialects.js';
import { RefusedMarks } from '../../js/fetch/healing.js';

const ANTHROPIC = 'https://api.anthropic.com/v1/messages';
const RESPONSES = 'https://api.openai.com/v1/responses';
const GEMINI = 'https://generativelanguage.googleapis.com/v1beta/models/gemini-4-pro:generateContent';

const thinking = (signature) => ({ type: 'thinking', thinking: '', signature });
const text = (value) => ({ type: 'text', text: value });
const claude = (...messages) => ({
  model: 'claude-opus-5-5',
  max_tokens: 99,
  thinking: { type: 'adaptive' },
  messages,
});
const turn = (n, blocks) => [
  { role: 'user', content: `question ${n}` },
  { role: 'assistant', content: blocks },
];
const CHAT = claude(
  ...turn(1, [thinking('AAA='), text('one')]),
  ...turn(2, [thinking('BBB='), text('two')]),
  ...turn(3, [thinking('CCC='), text('three')]),
  { role: 'user', content: 'and?' },
);
const bound = (place = 'messages.3.content.0') =>
  refusal(
    `${place}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`,
  );
const refusal = (message, more) => ({ type: 'error', error: { type: 'invalid_request_error', message, ...more } });

/** A `fetch` that answers with these values in turn, the last one again and again. */
function answering(...answers) {
  const bodies = [];
  const responses = [];
  const fetch = async (input, init) => {
    bodies.push(JSON.parse(await new Request(input, init).text()));
    const answer = answers[Math.min(bodies.length, answers.length) - 1];
    const response =
      typeof answer === 'function'
        ? answer()
        : Response.json(answer, {
            status: answer.error ? 400 : 200,
            headers: { 'x-request-id': `req_${bodies.length}` },
          });
    responses.push(response);
    return response;
  };
  return { fetch, bodies, responses };
}

const post = (body) => ({
  method: 'POST',
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
});
const signatures = (body) =>
  body.messages.flatMap(({ content }) => [content].flat()).flatMap(({ signature }) => signature ?? []);
const OK = { id: 'ok' };

describe('r74: repairing() heals', () => {
  test('r74 thinking that is bound to another conversation is left out from the named place on, once and for good', async () => {
    const { fetch, bodies } = answering(bound(), OK);
    const reports = [];
    const send = repairing({ fetch, onRepair: ({ report }) => reports.push(report) });
    const response = await send(ANTHROPIC, post(CHAT));
    assert.deepEqual([response.status, bodies.length], [200, 2]);
    assert.deepEqual(bodies.map(signatures), [['AAA=', 'BBB=', 'CCC='], ['AAA=']]);
    assert.deepEqual(
      bodies[1].messages.map(({ role }) => role),
      CHAT.messages.map(({ role }) => role),
      'nothing else is changed',
    );
    assert.deepEqual([reports.length, reports[0][0].code, reports[0][0].path], [1, 'healed', '/messages/3/content/0']);
    // The next turn has a new block, which is sent; the refused ones are not.
    const next = claude(
      ...CHAT.messages,
      { role: 'assistant', content: [thinking('DDD='), text('four')] },
      { role: 'user', content: 'more' },
    );
    await send(ANTHROPIC, post(next));
    assert.deepEqual(signatures(bodies[2]), ['AAA=', 'DDD=']);
    assert.deepEqual([bodies.length, reports[1][0].code], [3, 'healed']);
    assert.deepEqual(
      reports.map(([first]) => first.severity),
      ['warning', 'info'],
      'news once',
    );
    assert.match(reports[0][0].message, /\("messages\.3\.content\.0: Invalid `signature` in `thinking` block\.?/);
    // Another origin did not refuse them.
    await send('https://gateway.example/v1/messages', post(CHAT));
    assert.deepEqual(signatures(bodies[3]), ['AAA=', 'BBB=', 'CCC=']);
  });

  test('r74 an error about bound thinking that names no place heals by all thinking', async () => {
    const missing = refusal(
      'The `thinking` block that preceded this one when it was created is missing from this request',
    );
    const { fetch, bodies } = answering(missing, OK);
    assert.equal((await repairing({ fetch })(ANTHROPIC, post(CHAT))).status, 200);
    assert.deepEqual(bodies.map(signatures), [['AAA=', 'BBB=', 'CCC='], []]);
  });

  test('r74 a kind of thinking that the model does not take becomes adaptive, and is not sent again', async () => {
    const kind = refusal(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
    const { fetch, bodies } = answering(kind, OK);
    const send = repairing({ fetch });
    const body = {
      ...claude({ role: 'user', content: 'hi' }),
      model: 'claude-next',
      thinking: { type: 'enabled', budget_tokens: 2048 },
    };
    await send(ANTHROPIC, post(body));
    assert.deepEqual(bodies[1], { ...body, thinking: { type: 'adaptive' } });
    await send(ANTHROPIC, post(body));
    assert.deepEqual([bodies.length, bodies[2].thinking], [3, { type: 'adaptive' }]);
  });

  const item = (id, more) => ({ type: 'reasoning', id, summary: [], encrypted_content: `gAAA${id}`, ...more });
  const input = [
    { role: 'user', content: 'hi' },
    item('rs_1'),
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: '1' },
  ];
  const responses = { model: 'gpt-6', store: false, input };
  const openai = (message, code = null) => ({ error: { message, type: 'invalid_request_error', param: null, code } });

  test('r74 reasoning that was refused is left out, and what followed it has no id', async () => {
    for (const answer of [
      openai("Item 'rs_1' of type 'reasoning' was provided without its required following item."),
      openai('The encrypted content gAAA...DQ== could not be verified.', 'invalid_encrypted_content'),
      openai(
        'The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
      ),
    ]) {
      const { fetch, bodies } = answering(answer, OK);
      const send = repairing({ fetch });
      await send(RESPONSES, post(responses));
      const { id, ...call } = input[2];
      assert.deepEqual(bodies[1].input, [input[0], call, input[3]], `${answer.error.message} ${id}`);
      await send(RESPONSES, post(responses));
      assert.deepEqual([bodies.length, bodies[2].input.length], [3, 3]);
    }
  });

  test('r74 an id of the wrong form is left out of that item', async () => {
    const { fetch, bodies } = answering(
      openai("Invalid 'input[2].id': 'call_9'. Expected an ID that begins with 'fc'.", 'invalid_value'),
      OK,
    );
    await repairing({ fetch })(
      RESPONSES,
      post({ ...responses, input: input.map((one) => (one.id === 'fc_1' ? { ...one, id: 'fc-9' } : one)) }),
    );
    assert.deepEqual(
      bodies[1].input.map(({ id }) => id),
      [undefined, 'rs_1', undefined, undefined],
    );
  });

  test('r27 r74 a call that the service has without an output is closed, since a 400 shows that nothing was processed', async () => {
    const { fetch, bodies } = answering(openai('No tool output found for function call call_7.'), OK);
    await repairing({ fetch })(
      RESPONSES,
      post({ model: 'gpt-6', previous_response_id: 'resp_1', input: [{ role: 'user', content: 'hello?' }] }),
    );
    assert.deepEqual(bodies[1].input[0].call_id, 'call_7');
    assert.deepEqual(bodies[1].input[0].type, 'function_call_output');
    assert.equal(bodies[1].previous_response_id, 'resp_1');
  });

  const signed = { functionCall: { name: 'f', args: {} } };
  const contents = [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'model', parts: [signed] },
    { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: 1 } } }] },
  ];
  const google = (message) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

  test('r74 a missing thought signature is replaced by the placeholder, and a corrupted one too', async () => {
    const missing = answering(
      google(
        'Function call is missing a thought_signature in functionCall parts. Additional data, function call `default_api:f` , position 2.',
      ),
      OK,
    );
    // A model that the rules do not know.
    const send = repairing({ fetch: missing.fetch });
    const url = GEMINI.replace('gemini-4-pro', 'robotics-er');
    await send(url, post({ contents }));
    assert.match(missing.bodies[1].contents[1].parts[0].thoughtSignature, /^c2tpcF90aG91Z2h0/);
    await send(url, post({ contents }));
    assert.deepEqual([missing.bodies.length, missing.bodies[2]], [3, missing.bodies[1]]);
    const corrupted = answering(google('Corrupted thought signature.'), OK);
    await repairing({ fetch: corrupted.fetch })(
      GEMINI,
      post({
        contents: contents.map((one) =>
          one.role === 'model'
            ? {
                role: 'model',
                parts: [
                  { text: 'hm', thoughtSignature: 'QQ==' },
                  { ...signed, thoughtSignature: 'QUE=' },
                ],
              }
            : one,
        ),
      }),
    );
    assert.deepEqual(corrupted.bodies[1].contents[1].parts[0], { text: 'hm' });
    assert.match(corrupted.bodies[1].contents[1].parts[1].thoughtSignature, /^c2tpcF90aG91Z2h0/);
  });

  test('r74 a gateway that passes a chat on to Mistral gets ids of nine characters', async () => {
    const { fetch, bodies } = answering(
      {
        error: {
          message:
            'upstream: {"message":"Tool call id was call_12 but must be a-z, A-Z, 0-9, with a length of 9.","code":"3280"}',
        },
      },
      OK,
    );
    const send = repairing({ fetch });
    const body = {
      model: 'mistral/large',
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'call_12', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_12', content: '1' },
      ],
    };
    await send('https://gateway.example/v1/chat/completions', post(body));
    const [, call, result] = bodies[1].messages;
    assert.match(call.tool_calls[0].id, /^[A-Za-z0-9]{9}$/);
    assert.equal(result.tool_call_id, call.tool_calls[0].id);
    await send('https://gateway.example/v1/chat/completions', post(body));
    assert.deepEqual([bodies.length, bodies[2]], [3, bodies[1]]);
  });

  test('r74 a member that a strict server does not take is left out', async () => {
    const { fetch, bodies } = answering(
      refusal('messages.1.content.0.text.parsed: Extra inputs are not permitted'),
      OK,
    );
    await repairing({ fetch })(
      ANTHROPIC,
      post(claude(...turn(1, [{ ...text('one'), parsed: null }]), { role: 'user', content: 'and?' })),
    );
    assert.deepEqual(bodies[1].messages[1].content, [text('one')]);
  });
});

describe('r74: repairing() repeats nothing else', () => {
  const unknown = refusal('max_tokens: 99 is too low');

  test('r74 an error that is not in the table passes unchanged, with its headers and the bytes of its body', async () => {
    const { fetch, bodies, responses } = answering(unknown);
    const response = await repairing({ fetch })(ANTHROPIC, post(CHAT));
    assert.equal(response, responses[0], 'the very same response');
    assert.deepEqual([response.status, response.headers.get('x-request-id'), bodies.length], [400, 'req_1', 1]);
    assert.equal(await response.text(), JSON.stringify(unknown));
  });

  test('r74 of a request that fails again the second answer passes', async () => {
    const { fetch, bodies, responses } = answering(bound(), bound('messages.1.content.0'), OK);
    const send = repairing({ fetch });
    const response = await send(ANTHROPIC, post(CHAT));
    assert.deepEqual([response, bodies.length], [responses[1], 2]);
    assert.deepEqual(await response.json(), bound('messages.1.content.0'));
  });

  test('r74 r77 a schema that conversations refuse with 422 heals, and no other dialect has that status', async () => {
    assert.deepEqual(
      Object.entries(REFUSAL_STATUSES).filter(([, statuses]) => `${statuses}` !== '400'),
      [['mistral-conversations', [400, 422]]],
    );
    const place = ['body', 'inputs', 1, 'message.output', 'id'];
    const refused = { detail: [{ type: 'extra_forbidden', loc: place, msg: 'Extra inputs are not permitted' }] };
    const body = {
      model: 'mistral-small-latest',
      inputs: [
        { type: 'message.input', role: 'user', content: 'hello' },
        { type: 'message.output', id: 'msg_1', role: 'assistant', content: 'Hi.' },
        { type: 'message.input', role: 'user', content: 'and?' },
      ],
    };
    const { fetch, bodies } = answering(() => Response.json(refused, { status: 422 }), OK, OK);
    const send = repairing({ fetch });
    for (let request = 0; request < 2; request++)
      assert.equal((await send('https://api.mistral.ai/v1/conversations', post(body))).status, 200);
    assert.deepEqual(
      bodies.map(({ inputs }) => inputs[1].id),
      ['msg_1', undefined, undefined],
      'healed once, and left out from then on',
    );
  });

  for (const status of [200, 401, 404, 409, 413, 422, 429, 500, 529]) {
    test(`r74 an answer with status ${status} passes, whatever it says`, async () => {
      const { fetch, bodies } = answering(() => Response.json(bound(), { status }));
      assert.equal((await repairing({ fetch })(ANTHROPIC, post(CHAT))).status, status);
      assert.equal(bodies.length, 1);
    });
  }

  test('r74 without `heal`, and in the other modes, nothing is repeated', async () => {
    for (const options of [{ heal: false }, { mode: 'report' }, { mode: 'reject' }]) {
      const { fetch, bodies } = answering(bound());
      assert.equal((await repairing({ ...options, fetch })(ANTHROPIC, post(CHAT))).status, 400);
      assert.equal(bodies.length, 1);
    }
    assert.throws(() => repairing({ heal: 'yes' }), { code: 'config_invalid' });
  });

  test('r74 an error of unknown length is read up to a limit, and passes whole', async () => {
    const long = `${JSON.stringify(bound())}${' '.repeat(70_000)}`;
    const { fetch, bodies } = answering(() => new Response(long, { status: 400 }));
    assert.equal(await (await repairing({ fetch })(ANTHROPIC, post(CHAT))).text(), long);
    assert.equal(bodies.length, 1);
  });

  test('r74 of an error that does not end, or that is long by its header, no more than the limit is read', async () => {
    let pulled = 0;
    const endless = (headers) =>
      new Response(
        new ReadableStream(
          {
            pull: (controller) => {
              pulled += 1;
              controller.enqueue(new TextEncoder().encode(pulled === 1 ? JSON.stringify(bound()) : ' '.repeat(1_000)));
            },
          },
          { highWaterMark: 0 },
        ),
        { status: 400, headers },
      );
    for (const [headers, most] of [
      [{}, 80],
      [{ 'content-length': '70000' }, 1],
    ]) {
      pulled = 0;
      const { fetch, bodies } = answering(() => endless(headers));
      const response = await repairing({ fetch })(ANTHROPIC, post(CHAT));
      assert.deepEqual([response.status, bodies.length], [400, 1]);
      assert.ok(pulled <= most, `${pulled} pieces were read`);
      await response.body.cancel();
    }
  });

  test('r74 an error that cannot be read passes, with a warning', async (context) => {
    const warnings = context.mock.method(console, 'warn', () => {});
    const broken = () =>
      Object.assign(Response.json(bound(), { status: 400 }), {
        clone: () => {
          throw new TypeError('no copies');
        },
      });
    const { fetch, bodies, responses } = answering(broken);
    const response = await repairing({ fetch })(ANTHROPIC, post(CHAT));
    assert.deepEqual([response, bodies.length, warnings.mock.callCount()], [responses[0], 1, 1]);
    assert.match(warnings.mock.calls[0].arguments[0], /no copies/);
  });

  test('r74 the newest thousand marks of what was refused are remembered', () => {
    const marks = new RefusedMarks();
    const url = new URL(ANTHROPIC);
    marks.add(url, 'anthropic', ['first', 'again']);
    for (let at = 0; at < 999; at += 1) {
      marks.add(url, 'anthropic', [`mark${at}`]);
      marks.add(url, 'anthropic', ['again']);
    }
    const remembered = marks.of(url, 'anthropic');
    assert.deepEqual([remembered.length, remembered.includes('first'), remembered.at(-1)], [1_000, false, 'again']);
  });

  test('r74 a redirected answer passes: another address may have given it', async () => {
    const { fetch, bodies } = answering(() =>
      Object.defineProperty(Response.json(bound(), { status: 400 }), 'redirected', { value: true }),
    );
    assert.equal((await repairing({ fetch })(ANTHROPIC, post(CHAT))).status, 400);
    assert.equal(bodies.length, 1);
  });

  test('r74 an abort ends the wait for an error that does not end', async () => {
    const stop = new AbortController();
    const { fetch, bodies } = answering(
      () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }), { status: 400 }),
    );
    const answer = repairing({ fetch })(ANTHROPIC, { ...post(CHAT), signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    assert.equal((await answer).status, 400);
    assert.equal(bodies.length, 1);
  });

  test('r74 an error that arrives too slowly passes', { timeout: 20_000 }, async () => {
    let controller;
    const { fetch, bodies } = answering(
      () =>
        new Response(
          new ReadableStream({
            start(own) {
              controller = own;
              own.enqueue(new TextEncoder().encode('{"error":{'));
            },
          }),
          { status: 400 },
        ),
    );
    const response = await repairing({ fetch })(ANTHROPIC, post(CHAT));
    assert.deepEqual([response.status, bodies.length], [400, 1]);
    controller.enqueue(new TextEncoder().encode('}}'));
    controller.close();
    assert.equal(await response.text(), '{"error":{}}');
  });

  test('r74 an error of another fetch whose body never ends passes', { timeout: 20_000 }, async () => {
    const read = () => new Promise(() => {});
    const foreign = {
      status: 400,
      headers: new Headers({ 'content-length': '20' }),
      body: {},
      bodyUsed: false,
      clone: () => ({ body: {}, arrayBuffer: read }),
    };
    const { fetch, bodies } = answering(() => foreign);
    const response = await repairing({ fetch })(ANTHROPIC, post(CHAT));
    assert.deepEqual([response, bodies.length], [foreign, 1]);
  });

  test('r74 every form of a body is sent again: a stream, a Request, a Blob', async () => {
    const json = JSON.stringify(CHAT);
    const forms = [
      () => [ANTHROPIC, { method: 'POST', body: new Blob([json]).stream(), duplex: 'half' }],
      () => [new Request(ANTHROPIC, post(CHAT))],
      () => [ANTHROPIC, { method: 'POST', body: new Blob([json], { type: 'application/json' }) }],
      () => [ANTHROPIC, { method: 'POST', body: new TextEncoder().encode(json) }],
    ];
    for (const form of forms) {
      const { fetch, bodies } = answering(bound(), OK);
      const [input, init] = form();
      assert.equal((await repairing({ fetch })(input, init)).status, 200);
      assert.deepEqual(bodies.map(signatures), [['AAA=', 'BBB=', 'CCC='], ['AAA=']]);
    }
  });
});

/** A server that binds thinking: it refuses BBB= with the provider's sentence. */
async function server() {
  const seen = [];
  const app = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push({ body, key: request.headers['x-api-key'] ?? request.headers.authorization });
    const refused = body.includes('BBB=') || body.includes('gAAAbad');
    const answer = refused
      ? body.includes('BBB=')
        ? bound()
        : {
            error: {
              message: 'The encrypted content gAAA...bad= could not be verified.',
              code: 'invalid_encrypted_content',
            },
          }
      : { id: 'x', type: 'message', role: 'assistant', content: [], output: [] };
    response.writeHead(refused ? 400 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  app.listen(0, '127.0.0.1');
  await once(app, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (app.address());
  return { seen, url: `http://127.0.0.1:${port}`, close: () => app.close() };
}

test('r74 the SDKs of Anthropic and OpenAI get the answer of the healed request, after two requests', async () => {
  const { seen, url, close } = await server();
  try {
    const anthropic = new Anthropic({ apiKey: 'k1', baseURL: url, fetch: repairing() });
    await anthropic.messages.create(/** @type {any} */ (CHAT));
    for (const [Sdk, apiKey] of /** @type {const} */ ([
      [OpenAI, 'k2'],
      [OpenAI4, 'k3'],
    ]))
      await /** @type {any} */ (new Sdk({ apiKey, baseURL: `${url}/v1`, fetch: repairing() })).responses.create(
        /** @type {any} */ ({
          model: 'gpt-6',
          store: false,
          input: [
            { role: 'user', content: 'hi' },
            { type: 'reasoning', summary: [], encrypted_content: 'gAAAbad=' },
            { role: 'assistant', content: 'hello' },
            { role: 'user', content: 'and?' },
          ],
        }),
      );
    assert.deepEqual(
      seen.map(({ key }) => key),
      ['Bearer k1', 'Bearer k1', 'Bearer k2', 'Bearer k2', 'Bearer k3', 'Bearer k3'],
    );
  } finally {
    close();
  }
});

test('r74 heal() tells other clients what to send and what to remember', () => {
  const healed = heal(CHAT, 'anthropic', bound());
  assert.deepEqual(signatures(healed.body), ['AAA=']);
  assert.equal(healed.refused.length, 2);
  assert.deepEqual(signatures(repair(CHAT, 'anthropic', { refused: healed.refused }).body), ['AAA=']);
  assert.equal(heal(CHAT, 'anthropic', { error: { message: 'overloaded' } }), null);
  assert.equal(heal('{"messages":[]}', 'anthropic', bound()), null);
  assert.equal(heal('no JSON', 'anthropic', bound()), null);
});
