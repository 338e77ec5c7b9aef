// r64: modes, dialects of gateways, and failures that fail no request.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { repairing, RethreadError } from '../../js/entry/fetch-node.js';
import { repair, RethreadError as FormatsError } from '../../js/entry/formats-node.js';
import { BROKEN, OPENAI, spy, VALID } from './bodies.mjs';

const broken = JSON.stringify(BROKEN['openai-chat']);
const post = (body = broken) => ({ method: 'POST', body, headers: { 'content-type': 'application/json' } });

/** What is written by console.warn while it runs. */
async function warnings(work) {
  const found = [];
  const { warn } = console;
  console.warn = (text) => found.push(text);
  try {
    await work();
  } finally {
    console.warn = warn;
  }
  return found;
}

describe('r64: modes', () => {
  test('report: sends the body unchanged and calls onRepair', async () => {
    const { fetch, calls } = spy();
    const reports = [];
    const init = post();
    await repairing({ fetch, mode: 'report', onRepair: (info) => reports.push(info) })(OPENAI, init);
    assert.equal(calls[0][1], init);
    assert.deepEqual(
      reports[0].report.map(({ code }) => code),
      ['dangling_call'],
    );
    const valid = post(JSON.stringify(VALID));
    await repairing({ fetch, mode: 'report', onRepair: (info) => reports.push(info) })(OPENAI, valid);
    assert.equal(calls[1][1], valid);
    assert.equal(reports.length, 1, 'a valid body is not reported');
  });

  test('reject: rejects with invalid_input and the report, and sends nothing', async () => {
    const { fetch, calls } = spy();
    let reports = 0;
    const own = repairing({
      fetch,
      mode: 'reject',
      onRepair: () => {
        reports += 1;
      },
    });
    await assert.rejects(own(OPENAI, post()), (error) => {
      assert.ok(error instanceof RethreadError && error instanceof FormatsError);
      assert.equal(error.code, 'invalid_input');
      assert.match(error.message, /dangling_call/);
      assert.deepEqual(
        error.details.report.map(({ code }) => code),
        ['dangling_call'],
      );
      assert.deepEqual([error.details.url, error.details.dialect], [OPENAI, 'openai-chat']);
      return true;
    });
    assert.equal(calls.length, 0);
    await own(OPENAI, post(JSON.stringify(VALID)));
    await own(OPENAI, post('no JSON'));
    assert.equal(calls.length, 2);
    assert.equal(reports, 0, 'nothing was repaired');
  });

  test('danglingCalls and danglingText', async () => {
    const { fetch, calls } = spy();
    await repairing({ fetch, danglingText: 'cut off' })(OPENAI, post());
    await repairing({ fetch, danglingCalls: 'omit' })(OPENAI, post());
    assert.equal(calls[0][1].body, repair(broken, 'openai-chat', { danglingText: 'cut off' }).body);
    assert.equal(calls[1][1].body, repair(broken, 'openai-chat', { danglingCalls: 'omit' }).body);
    assert.notEqual(calls[0][1].body, calls[1][1].body);
  });
});

describe('r64: dialects', () => {
  const GATEWAY = 'https://gateway.example/llm';

  for (const [dialect, body] of Object.entries(BROKEN)) {
    test(`${dialect}, given for a gateway`, async () => {
      const wanted = repair(JSON.stringify(body), dialect).body;
      for (const given of [dialect, () => dialect]) {
        const { fetch, calls } = spy();
        await repairing({ fetch, dialect: given })(GATEWAY, post(JSON.stringify(body)));
        assert.equal(calls[0][1].body, wanted);
      }
    });
  }

  test('a function gets URL and body; null passes the body unchanged, undefined leaves the choice to the URL', async () => {
    const asked = [];
    for (const [answer, isRepaired] of [
      [null, false],
      [undefined, true],
    ]) {
      const { fetch, calls } = spy();
      await repairing({
        fetch,
        dialect: (request) => {
          asked.push(request);
          return answer;
        },
      })(`${OPENAI}?key=secret&api-version=1`, post());
      assert.equal(calls[0][1].body !== broken, isRepaired);
    }
    assert.deepEqual(asked[0], { url: `${OPENAI}?api-version=1`, body: BROKEN['openai-chat'] });
  });

  test('the option takes precedence over the URL', async () => {
    const { fetch, calls } = spy();
    await repairing({ fetch, dialect: 'mistral' })('http://localhost:8000/v1/chat/completions', post());
    assert.match(JSON.parse(calls[0][1].body).messages[1].tool_calls[0].id, /^[a-zA-Z0-9]{9}$/);
  });

  test("a body without the dialect's list passes", async () => {
    const { fetch, calls } = spy();
    const init = post(JSON.stringify(BROKEN.gemini));
    await repairing({ fetch, dialect: 'anthropic' })(GATEWAY, init);
    assert.equal(calls[0][1], init);
  });
});

describe('r61 r64: messages of another format', () => {
  const kwargs = { content: 'hello', additional_kwargs: {} };
  const langChain = JSON.stringify({
    model: 'gpt-4.1',
    messages: [{ lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'HumanMessage'], kwargs }],
  });

  test('are sent unchanged, never emptied, and reported', async () => {
    const { fetch, calls } = spy();
    const reports = [];
    const init = post(langChain);
    await repairing({ fetch, onRepair: (info) => reports.push(info) })(OPENAI, init);
    assert.equal(calls[0][1], init);
    assert.deepEqual(
      reports.map(({ report }) => report.map(({ code, action }) => [code, action])),
      [[['unknown_shape', 'kept']]],
    );
  });

  test('r64 blocks of another dialect are reported in the modes repair and report, sent as they are, and rejected with one advice', async () => {
    const blocks = JSON.stringify({
      model: 'm',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
      ],
    });
    for (const mode of ['repair', 'report']) {
      const reports = [];
      const { fetch, calls } = spy();
      await repairing({ fetch, mode, onRepair: (info) => reports.push(info) })(OPENAI, post(blocks));
      assert.equal(calls[0][1].body, blocks);
      assert.equal(reports.length, 1, mode);
      assert.ok(
        reports[0].report.every(({ action }) => action === 'kept'),
        mode,
      );
      assert.match(reports[0].report[0].message, /convert\(body, "anthropic", "openai-chat"\)/);
    }
    await assert.rejects(
      repairing({ fetch: spy().fetch, mode: 'reject' })(OPENAI, post(blocks)),
      ({ code, message }) => {
        assert.equal(code, 'invalid_input');
        assert.match(message, /convert\(body, "anthropic", "openai-chat"\)/);
        assert.doesNotMatch(message, /\.;|`repair` returns/);
        return true;
      },
    );
  });

  test('are reported, and rejected in the mode reject', async () => {
    const { fetch, calls } = spy();
    const reports = [];
    await repairing({ fetch, mode: 'report', onRepair: (info) => reports.push(info) })(OPENAI, post(langChain));
    assert.ok(reports[0].report.some(({ severity }) => severity === 'error'));
    await assert.rejects(repairing({ fetch, mode: 'reject' })(OPENAI, post(langChain)), { code: 'invalid_input' });
    assert.equal(calls.length, 1);
  });
});

describe('r64: no failure inside fails a request', () => {
  test('onRepair that throws or rejects', async () => {
    for (const onRepair of [
      () => {
        throw new Error('mine');
      },
      async () => {
        throw new Error('mine');
      },
      () => {
        throw Object.create(null);
      },
    ]) {
      const { fetch, calls } = spy();
      const own = repairing({ fetch, onRepair });
      const said = await warnings(async () => {
        await own(OPENAI, post());
        await own(OPENAI, post());
        await new Promise((resolve) => setTimeout(resolve));
      });
      assert.equal(calls.length, 2);
      assert.notEqual(calls[0][1].body, broken);
      assert.equal(said.length, 1, 'said once');
    }
  });

  test('a dialect function that throws, or returns an unknown dialect', async () => {
    for (const dialect of [
      () => {
        throw new Error('mine');
      },
      () => 'morse',
      () => 'toString',
      () => ({}),
    ]) {
      const { fetch, calls } = spy();
      const init = post();
      const said = await warnings(() => repairing({ fetch, dialect })(OPENAI, init));
      assert.equal(calls[0][1], init);
      assert.equal(said.length, 1);
    }
  });

  test('invalid arguments reach the underlying fetch, which rejects them', async () => {
    for (const args of [
      [],
      ['no address', post()],
      [OPENAI, { method: 'POST', headers: { 'bad name': '1' }, body: broken }],
      [OPENAI, null],
    ]) {
      const { fetch, calls } = spy();
      await repairing({ fetch })(...args);
      assert.deepEqual(calls, [args]);
    }
    await assert.rejects(repairing()('no address', post()), TypeError);
  });

  test('the error of fetch is passed on', async () => {
    const failure = new TypeError('fetch failed');
    await assert.rejects(
      repairing({
        fetch: async () => {
          throw failure;
        },
      })(OPENAI, post()),
      failure,
    );
  });

  test('the response is passed on', async () => {
    const response = new Response('x');
    assert.equal(await repairing({ fetch: async () => response })(OPENAI, post()), response);
  });

  test('a global fetch that is replaced by it does not call itself', async () => {
    const { fetch, calls } = spy();
    const original = globalThis.fetch;
    try {
      globalThis.fetch = fetch;
      globalThis.fetch = repairing();
      await globalThis.fetch(OPENAI, post());
    } finally {
      globalThis.fetch = original;
    }
    assert.equal(calls.length, 1);
    assert.notEqual(calls[0][1].body, broken);
  });

  test('wrapped twice, it repairs once', async () => {
    const { fetch, calls } = spy();
    let reports = 0;
    const count = () => {
      reports += 1;
    };
    await repairing({ onRepair: count, fetch: repairing({ fetch, onRepair: count }) })(OPENAI, post());
    assert.equal(reports, 1);
    assert.equal(calls.length, 1);
  });
});

describe('r64: reports', () => {
  test('r68: no key of the address', async () => {
    const { fetch, calls } = spy();
    const reports = [];
    const url =
      'https://me:secret@generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&key=AIzaSecret';
    await repairing({ fetch, onRepair: (info) => reports.push(info) })(url, post(JSON.stringify(BROKEN.gemini)));
    assert.equal(calls[0][0], url);
    assert.equal(
      reports[0].url,
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    );
  });

  test('wrong options are config_invalid at once', () => {
    const wrong = [
      null,
      { mode: 'mend' },
      { dialect: 'morse' },
      { fetch: 'x' },
      { onRepair: 1 },
      { danglingCalls: 'drop' },
      { danglingText: 7 },
      { onrepair() {} },
    ];
    for (const options of wrong) {
      assert.throws(
        () => repairing(options),
        (error) => error instanceof RethreadError && error.code === 'config_invalid',
        JSON.stringify(options),
      );
    }
    repairing({ mode: undefined, dialect: undefined, fetch: undefined });
  });
});

describe('r64: repairing that is not called, or called with a fetch', () => {
  test('r64 as a `fetch`, it says that it is to be called', () => {
    for (const address of [OPENAI, new URL(OPENAI), new Request(OPENAI, post())])
      assert.throws(() => repairing(/** @type {any} */ (address), post()), {
        code: 'config_invalid',
        message: '`repairing` is not a `fetch`, it returns one: pass `fetch: repairing()`',
      });
  });

  test('r64 a `fetch` in place of the options is to be an option', () => {
    assert.throws(() => repairing(/** @type {any} */ (fetch)), {
      code: 'config_invalid',
      message: '`repairing` takes options: `repairing({ fetch })`',
    });
    assert.throws(() => repairing(/** @type {any} */ ({ url: OPENAI })), /`url` is not an option of `repairing`/);
  });
});
