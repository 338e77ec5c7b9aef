// Servers that keep sending.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { convert, open, repair, validate } from 'rethread';
import { drive } from 'rethread/host';
import { until } from './scenarios/kit.mjs';

const provider = (stream) => ({
  dialect: 'openai-chat',
  url: 'https://model.example/v1',
  params: { model: 'm' },
  stream,
});
const whole = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
});
const json = { headers: { 'content-type': 'application/json' } };
const encode = (text) => new TextEncoder().encode(text);

/** A response that sends `piece` for ever, and what was taken of it. */
function endless(piece, init = json) {
  const taken = { bytes: 0, cancelled: false };
  const body = new ReadableStream(
    {
      pull(controller) {
        taken.bytes += piece.length;
        controller.enqueue(piece);
      },
      cancel() {
        taken.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { taken, fetch: async () => new Response(body, init) };
}

async function start(request, options = {}) {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', options);
  return { client, session, run: await session.run({ input: 'x', ...request }) };
}

async function works(session) {
  const { status, error } = await drive(await session.run({ input: 'And?', provider: provider(false) }), {
    fetch: async () => new Response(whole, json),
  }).result;
  assert.equal(status, 'finished', JSON.stringify(error));
}

describe('r62 a response has a limit', { timeout: 60_000 }, () => {
  const sse = { headers: { 'content-type': 'text/event-stream' } };
  const cases = {
    'a line without an end': [true, encode('x'.repeat(100_000)), sse],
    'events without an end': [
      true,
      encode(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(50_000) } }] })}\n\n`),
      sse,
    ],
    'one JSON answer': [false, encode(' '.repeat(100_000)), json],
    'a refusal': [true, encode(' '.repeat(100_000)), { status: 400, ...json }],
  };
  for (const [name, [stream, piece, init]] of Object.entries(cases)) {
    for (const maxResponseBytes of [undefined, 1_000_000]) {
      test(`r62 ${name}, at most ${maxResponseBytes ?? 'the default'}`, async () => {
        const { session, run, client } = await start({
          provider: provider(stream),
          ...(maxResponseBytes && { maxResponseBytes }),
        });
        const { taken, fetch } = endless(piece, init);
        const driven = drive(run, { fetch });
        const { status, error } = await driven.result;
        assert.deepEqual([status, error.code], ['failed', 'too_large']);
        const most = maxResponseBytes ?? 32 * 1024 * 1024;
        assert.ok(taken.bytes > most && taken.bytes < most + 10 * piece.length, `${taken.bytes} bytes were read`);
        await until(async () => taken.cancelled);
        const events = [];
        for await (const { type } of driven) events.push(type);
        assert.ok(!events.includes('retrying'), 'it is not sent again');
        assert.equal(events.at(-1), 'finished');
        const [pending] = await session.pendingRuns();
        assert.deepEqual([pending.id, pending.state, pending.error.code], [run.id, 'failed', 'too_large']);
        await works(session);
        await client.close();
      });
    }
  }

  test('r62 bytes that are held back by the credential filter count', async () => {
    const { run, client } = await start({ provider: provider(true), maxResponseBytes: 1_000_000 });
    const { taken, fetch } = endless(encode(`data: secret-token-123 ${'x'.repeat(100_000)}`), sse);
    const { status, error } = await drive(run, { fetch, headers: { authorization: 'Bearer secret-token-123' } }).result;
    assert.deepEqual([status, error.code], ['failed', 'too_large']);
    assert.ok(taken.bytes < 2_000_000);
    await client.close();
  });

  test('r62 a declared length above the limit is enough; a whole response is measured before it is read', async () => {
    const { run, client } = await start({ provider: provider(false), maxResponseBytes: 1000 });
    const { taken, fetch } = endless(encode('x'), { headers: { 'content-length': '1001' } });
    assert.equal((await drive(run, { fetch }).result).error.code, 'too_large');
    assert.ok(taken.bytes <= 2);
    for (const [body, want] of [
      ['x'.repeat(1001), 'too_large'],
      [encode('x'.repeat(1001)), 'too_large'],
      [whole.padEnd(1000), null],
    ]) {
      const other = await (await client.session(`${want}${typeof body}`)).run({
        input: 'x',
        provider: provider(false),
        maxResponseBytes: 1000,
      });
      await other.answer(other.effects()[0].id, { type: 'response', status: 200, body });
      assert.equal(other.result().error?.code ?? null, want);
    }
    await client.close();
  });

  test('r62 an answer of exactly that size is accepted, and the partial answer is kept if the option is set', async () => {
    const { run, client } = await start({ provider: provider(false), maxResponseBytes: whole.length });
    assert.equal((await drive(run, { fetch: async () => new Response(whole, json) }).result).status, 'finished');
    await client.close();
    const keeping = await start({ provider: provider(true), maxResponseBytes: 2000, onStop: 'keep' });
    const event = encode(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(300) } }] })}\n\n`,
    );
    assert.equal((await drive(keeping.run, { fetch: endless(event, sse).fetch }).result).error.code, 'too_large');
    const { items } = await keeping.session.messages();
    assert.deepEqual(
      items.map(({ role, status }) => [role, status]),
      [
        ['user', 'complete'],
        ['assistant', 'failed'],
      ],
    );
    assert.match(items[1].parts[0].text, /^x{300,1800}$/);
    await works(keeping.session);
    await keeping.client.close();
  });

  test('r62 the option must be a number of bytes', async () => {
    const client = await open({ store: 'memory' });
    const session = await client.session('s');
    for (const maxResponseBytes of [0, -1, Infinity, '1', 2 ** 40]) {
      await assert.rejects(
        session.run({ input: 'x', provider: provider(false), maxResponseBytes }),
        { code: 'config_invalid' },
        String(maxResponseBytes),
      );
    }
    await works(session);
    await client.close();
  });
});

describe('r62 input that does not fit into memory is too_large before any work', { timeout: 60_000 }, () => {
  const MB = 1024 * 1024;
  const items = `{"messages":[${'[],'.repeat(6 * MB)}[]]}`;
  const cases = { 'too many bytes': () => new Uint8Array(257 * MB), 'too many items': () => items };

  for (const [name, body] of Object.entries(cases)) {
    test(`r62 ${name}`, async () => {
      const client = await open({ store: 'memory' });
      const session = await client.session('s');
      const given = body();
      for (const call of [
        () => validate(given, 'openai-chat'),
        () => repair(given, 'gemini'),
        () => convert(given, 'mistral', 'gemini'),
      ]) {
        assert.throws(call, { code: 'too_large' });
      }
      await assert.rejects(session.append(given, 'openai-chat'), { code: 'too_large' });
      await assert.rejects(session.run({ input: given, provider: provider(false) }), { code: 'too_large' });
      await works(session);
      await client.close();
    });
  }

  test('r62 a response with more items than fit into memory', async () => {
    const { session, run, client } = await start({ provider: provider(false) });
    const { status, error } = await drive(run, { fetch: async () => new Response(items, json) }).result;
    assert.deepEqual([status, error.code], ['failed', 'too_large']);
    await works(session);
    await client.close();
  });
});
