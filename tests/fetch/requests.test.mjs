// r64: every body that a fetch takes, and what else a request says.

import assert from 'node:assert/strict';
import http from 'node:http';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { repair } from '../../js/entry/formats-node.js';
import { repairing } from '../../js/entry/fetch-node.js';
import { BROKEN, OPENAI, sentText, spy, VALID } from './bodies.mjs';

// Odd spaces and a number beyond JavaScript's: what is not repaired keeps its bytes.
const broken = JSON.stringify(BROKEN['openai-chat'], null, 1).replace(
  '"model"',
  '"seed": 12345678901234567890, "model"',
);
const repaired = repair(broken, 'openai-chat').body;
const valid = JSON.stringify(VALID, null, 1);
assert.notEqual(broken, repaired);

const bytes = (text) => new TextEncoder().encode(text);
/** In pieces that end within a character. */
const stream = (text, size = 5) =>
  new ReadableStream({
    start(controller) {
      for (let at = 0, all = bytes(text); at < all.length; at += size) controller.enqueue(all.slice(at, at + size));
      controller.close();
    },
  });
const duplex = 'half';
const json = { 'content-type': 'application/json' };
const request = (text, more) => new Request(OPENAI, { method: 'POST', headers: json, body: text, ...more });

/** Every form of a body, as the arguments of fetch. */
const FORMS = {
  'a string': (text) => [OPENAI, { method: 'POST', body: text }],
  'a string, the method in small letters': (text) => [OPENAI, { method: 'post', body: text, headers: json }],
  'a URL object': (text) => [new URL(OPENAI), { method: 'POST', body: text, headers: new Headers(json) }],
  'a Uint8Array': (text) => [OPENAI, { method: 'POST', body: bytes(text), headers: Object.entries(json) }],
  'a Buffer': (text) => [OPENAI, { method: 'POST', body: Buffer.from(text) }],
  'an ArrayBuffer': (text) => [OPENAI, { method: 'POST', body: bytes(text).buffer }],
  'a DataView': (text) => [OPENAI, { method: 'POST', body: new DataView(bytes(`__${text}`).buffer, 2) }],
  'a Blob': (text) => [OPENAI, { method: 'POST', body: new Blob([text], json) }],
  'a Blob with a type': (text) => [OPENAI, { method: 'POST', body: new Blob([text], { type: 'application/json' }) }],
  'a ReadableStream': (text) => [OPENAI, { method: 'POST', body: stream(text), duplex }],
  'an async iterable': (text) => [OPENAI, { method: 'POST', body: Readable.from([Buffer.from(text)]), duplex }],
  'a Request': (text) => [request(text)],
  'a Request with an init that says nothing of the body': (text) => [
    request(text),
    { headers: { ...json, 'x-own': '1' } },
  ],
  'a Request with a stream': (text) => [request(stream(text), { duplex })],
  'a Request whose body the init replaces': (text) => [request('{}'), { body: text }],
  'a Request of another method': (text) => [new Request(OPENAI), { method: 'POST', body: text, headers: json }],
  'a Request as the init': (text) => [OPENAI, request(text)],
};

describe('r64: bodies', () => {
  for (const [form, argumentsOf] of Object.entries(FORMS)) {
    test(`${form} is repaired`, async () => {
      const { fetch, calls } = spy();
      const reports = [];
      const args = argumentsOf(broken);
      await repairing({ fetch, onRepair: (info) => reports.push(info) })(...args);
      assert.equal(calls[0][0], args[0], 'the same address');
      const sent = new Request(...calls[0]);
      assert.equal(sent.method, 'POST');
      const type = new Request(...argumentsOf(broken)).headers.get('content-type');
      assert.equal(sent.headers.get('content-type'), type, 'the content type that it would have had');
      assert.equal(await sent.text(), repaired);
      assert.deepEqual(
        reports.map(({ url, dialect, report }) => [url, dialect, report[0].code]),
        [[OPENAI, 'openai-chat', 'dangling_call']],
      );
    });

    test(`${form} that is valid passes`, async () => {
      const { fetch, calls } = spy();
      const args = argumentsOf(valid);
      const isStream = args[1]?.duplex;
      const reports = [];
      await repairing({ fetch, onRepair: (info) => reports.push(info) })(...args);
      assert.deepEqual(reports, []);
      if (!isStream) args.forEach((one, i) => assert.equal(calls[0][i], one, 'the very same arguments'));
      assert.equal(await sentText(calls[0]), valid);
    });
  }

  const LEFT_ALONE = {
    FormData: () => Object.assign(new FormData(), {}),
    URLSearchParams: () => new URLSearchParams({ messages: '[]' }),
    'no JSON': () => 'messages=1',
    'an array': () => JSON.stringify(BROKEN['openai-chat'].messages),
    'bytes that are no UTF-8': () => new Uint8Array([0x7b, 0xff, 0x7d]),
    'another content type': () => new Blob([broken], { type: 'application/octet-stream' }),
    'a number': () => 7,
    nothing: () => null,
  };
  for (const [what, body] of Object.entries(LEFT_ALONE)) {
    test(`${what} passes`, async () => {
      const { fetch, calls } = spy();
      const init = { method: 'POST', body: body() };
      await repairing({ fetch })(OPENAI, init);
      assert.equal(calls[0][1], init);
    });
  }

  test('r41 inputs that are a text, and bodies that continue without any, pass', async () => {
    const bodies = {
      'https://api.mistral.ai/v1/conversations': { agent_id: 'ag_1', inputs: 'Hi' },
      'https://api.mistral.ai/v1/conversations/conv_1': {
        tool_confirmations: [{ tool_call_id: 'aaaaaaaaa', confirmation: 'allow' }],
      },
      'https://generativelanguage.googleapis.com/v1beta/interactions': { model: 'gemini-3-flash', input: 'Hi' },
    };
    for (const [url, body] of Object.entries(bodies)) {
      const { fetch, calls } = spy();
      const reports = [];
      const init = { method: 'POST', body: JSON.stringify(body), headers: json };
      await repairing({ fetch, onRepair: (info) => reports.push(info), mode: 'reject' })(url, init);
      assert.deepEqual([calls[0][1] === init, reports], [true, []], url);
    }
  });

  for (const method of ['GET', 'PUT', 'DELETE', undefined]) {
    test(`${method ?? 'no method'} passes`, async () => {
      const { fetch, calls } = spy();
      const init = { method, body: broken };
      await repairing({ fetch })(OPENAI, init, 'third');
      assert.equal(calls[0][1], init);
      assert.equal(calls[0].length, 3);
    });
  }

  test('a compressed body and one with a digest pass', async () => {
    for (const name of ['content-encoding', 'content-digest', 'content-md5']) {
      const { fetch, calls } = spy();
      const init = { method: 'POST', body: broken, headers: { [name]: 'x' } };
      await repairing({ fetch })(OPENAI, init);
      assert.equal(calls[0][1], init, name);
    }
  });

  test('r64 a body that is too large passes, a stream from its first byte', async () => {
    const large = `${broken.slice(0, -1)},"pad":"${'x'.repeat(33 * 1024 * 1024)}"}`;
    const largeInBytes = `${broken.slice(0, -1)},"pad":"${'\u20ac'.repeat(12 * 1024 * 1024)}"}`;
    for (const body of [large, bytes(large), new Blob([large]), largeInBytes]) {
      const { fetch, calls } = spy();
      const init = { method: 'POST', body };
      await repairing({ fetch })(OPENAI, init);
      assert.equal(calls[0][1], init);
    }
    for (const args of [
      [OPENAI, { method: 'POST', body: stream(large, 1 << 20), duplex }],
      [request(stream(large, 1 << 20), { duplex })],
      FORMS['an async iterable'](large),
    ]) {
      const { fetch, calls } = spy();
      await repairing({ fetch })(...args);
      assert.ok((await sentText(calls[0])) === large, 'the same text');
    }
  });

  test('r64 a body with too many errors passes, and is reported', async () => {
    const body = `{"model":"gpt-5","messages":[${Array(100_000).fill('{}').join(',')}]}`;
    const { fetch, calls } = spy();
    const reports = [];
    const init = { method: 'POST', body };
    await repairing({ fetch, onRepair: ({ report }) => reports.push(report) })(OPENAI, init);
    assert.equal(calls[0][1], init);
    assert.deepEqual(
      reports.map((report) => report.map(({ code, severity }) => [code, severity])),
      [[['too_many_edits', 'error']]],
    );
    await assert.rejects(repairing({ fetch, mode: 'reject' })(OPENAI, init), { code: 'invalid_input' });
    assert.equal(calls.length, 1);
  });

  test('a stream is read only for addresses of conversations', async () => {
    const { fetch, calls } = spy();
    const init = { method: 'POST', body: stream(broken), duplex };
    await repairing({ fetch })('https://api.openai.com/v1/files', init);
    assert.equal(calls[0][1], init);
    assert.equal(init.body.locked, false);
  });

  test('a failing stream fails with its own error', async () => {
    const { fetch, calls } = spy();
    const failing = new ReadableStream({
      pull(controller) {
        controller.error(new Error('the disk is gone'));
      },
    });
    await repairing({ fetch })(OPENAI, { method: 'POST', body: failing, duplex });
    await assert.rejects(sentText(calls[0]), /the disk is gone|terminated/);
  });

  test('other members of the request are not changed', async () => {
    const { fetch, calls } = spy();
    const { signal } = new AbortController();
    const dispatcher = {};
    const headers = { authorization: 'Bearer k', 'x-stainless-retry-count': '1' };
    await repairing({ fetch })(OPENAI, {
      method: 'POST',
      body: broken,
      headers,
      signal,
      keepalive: true,
      redirect: 'error',
      dispatcher,
    });
    const [, { body, ...rest }] = calls[0];
    assert.equal(body, repaired);
    assert.equal(rest.headers, headers);
    assert.deepEqual(rest, { method: 'POST', headers, signal, keepalive: true, redirect: 'error', dispatcher });
  });
});

describe('r64: a content-length that the client has set', () => {
  for (const form of ['a string', 'a ReadableStream', 'a Request']) {
    test(`is correct for ${form}`, async () => {
      const lengthOf = async (text) => {
        const { fetch, calls } = spy();
        const headers = { ...json, 'Content-Length': String(Buffer.byteLength(text)) };
        const [input, init] = FORMS[form](text);
        await repairing({ fetch })(...(init ? [input, { ...init, headers }] : [new Request(input, { headers })]));
        const given = new Headers(calls[0][1]?.headers ?? calls[0][0].headers);
        assert.equal(given.get('content-type'), 'application/json');
        return Number(given.get('content-length'));
      };
      assert.equal(await lengthOf(broken), Buffer.byteLength(repaired));
      assert.equal(await lengthOf(valid), Buffer.byteLength(valid));
    });
  }
});

describe('r64: at a server', () => {
  let server;
  let url;
  const seen = [];
  before(async () => {
    server = http.createServer(async (req, res) => {
      const parts = [];
      for await (const part of req) parts.push(part);
      seen.push({ headers: req.headers, text: Buffer.concat(parts).toString() });
      res.end('{}');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${server.address().port}/v1/chat/completions`;
  });
  after(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  );

  test('content-length is that of the repaired body, also where the client has set it', async () => {
    for (const headers of [
      json,
      { ...json, 'Content-Length': String(Buffer.byteLength(broken)) },
      new Headers({ ...json, 'content-length': String(Buffer.byteLength(broken)) }),
    ]) {
      seen.length = 0;
      const response = await repairing()(url, { method: 'POST', headers, body: broken });
      assert.equal(response.status, 200);
      assert.equal(seen[0].text, repaired);
      assert.equal(Number(seen[0].headers['content-length']), Buffer.byteLength(repaired));
      assert.equal(seen[0].headers['content-type'], 'application/json');
    }
  });

  test('every form arrives', async () => {
    for (const [form, argumentsOf] of Object.entries(FORMS)) {
      for (const [given, wanted] of [
        [broken, repaired],
        [valid, valid],
      ]) {
        seen.length = 0;
        const [input, init] = argumentsOf(given);
        await repairing()(input instanceof Request ? new Request(url, input) : url, init);
        assert.equal(seen[0].text, wanted, form);
      }
    }
  });

  test('an aborted request rejects with the reason, whatever its body', async () => {
    const reason = new Error('enough');
    for (const [form, argumentsOf] of Object.entries(FORMS)) {
      const [input, init] = argumentsOf(broken);
      const address = input instanceof Request ? new Request(url, input) : url;
      const before =
        init instanceof Request
          ? new Request(init, { signal: AbortSignal.abort(reason) })
          : { ...init, signal: AbortSignal.abort(reason) };
      await assert.rejects(repairing()(address, before), reason, form);
    }
    const stop = new AbortController();
    let cancelled;
    const hanging = new ReadableStream({
      cancel(why) {
        cancelled = why;
      },
    });
    const waiting = repairing()(url, { method: 'POST', body: hanging, duplex, signal: stop.signal });
    setTimeout(() => stop.abort(reason), 5);
    await assert.rejects(waiting, reason);
    assert.equal(cancelled, reason);
  });
});

test('r73 reasoning that the model misses is reported, and the request is sent unchanged in every mode', async () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const body = (model) =>
    JSON.stringify({
      model,
      messages: [
        { role: 'user', content: 'q' },
        { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'r' },
      ],
    });
  for (const mode of ['repair', 'report', 'reject']) {
    for (const [model, expected] of [
      ['deepseek-v4-pro', ['missing_reasoning']],
      ['gpt-6', []],
    ]) {
      const told = [];
      const sent = [];
      const fetch = async (_, init) => {
        sent.push(init.body);
        return Response.json({});
      };
      await repairing({ fetch, mode, onRepair: ({ report }) => told.push(...report.map(({ code }) => code)) })(OPENAI, {
        method: 'POST',
        headers: json,
        body: body(model),
      });
      assert.deepEqual([sent, told], [[body(model)], expected], `${mode} ${model}`);
    }
  }
});
