// Two tabs on one database.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** Two tabs, each with the database `name` and the session `s` open. */
async function tabs(name) {
  const context = await world.context();
  const both = [await world.page(context), await world.page(context)];
  for (const [at, page] of both.entries()) {
    await page.evaluate(
      async ([name, at]) => {
        globalThis.tab = at;
        globalThis.warnings = [];
        globalThis.client = await rethread.open({ name, onWarning: (finding) => warnings.push(finding) });
        globalThis.session = await client.session('s');
        globalThis.textsOf = async () => {
          const { items } = await session.messages({ limit: 10_000 });
          return items.map(({ role, parts }) => `${role}: ${parts.map(({ type, text }) => text ?? type).join(' ')}`);
        };
        globalThis.until = async (test) => {
          for (const end = Date.now() + 60_000; Date.now() < end; ) {
            if (await test()) return true;
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
          return false;
        };
      },
      [name, at],
    );
  }
  return both;
}

const inBoth = (both, work, argument) => Promise.all(both.map((page) => page.evaluate(work, argument)));

describe('two tabs', () => {
  test('two tabs append 100 times each at once: nothing is lost, both read all 200', async () => {
    const both = await tabs('appends');
    await inBoth(both, async () => {
      await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          session.append({ messages: [{ role: 'user', content: `tab ${tab} message ${n}` }] }, 'openai-chat'),
        ),
      );
    });
    const seen = await inBoth(both, async () => {
      await session.refresh();
      return {
        revision: session.revision,
        texts: await textsOf(),
        ids: (await session.messages({ limit: 1000 })).items.map(({ id, seq }) => `${id} ${seq}`),
      };
    });
    const want = [0, 1].flatMap((tab) => Array.from({ length: 100 }, (_, n) => `user: tab ${tab} message ${n}`)).sort();
    for (const { texts } of seen) assert.deepEqual(texts.slice().sort(), want);
    assert.deepEqual(seen[0], seen[1], 'in one order');
    assert.equal(new Set(seen[0].ids).size, 200);
    assert.equal(seen[0].revision, 200);
    for (const tab of [0, 1]) {
      const own = seen[0].texts.filter((text) => text.startsWith(`user: tab ${tab}`));
      assert.deepEqual(
        own,
        own.slice().sort((a, b) => Number(a.split(' ').at(-1)) - Number(b.split(' ').at(-1))),
        'each tab in its own order',
      );
    }
    for (const page of both) assert.deepEqual(page.complaints, []);
  });

  for (const dialect of ['openai-chat', 'anthropic']) {
    test(`r15 two tabs run a turn each at once, over ${dialect}: both turns are whole, one after the other`, async () => {
      const both = await tabs(`turns-${dialect}`);
      const lanes = [0, 1].map((tab) => world.lane(`turns-${dialect}-${tab}`));
      const results = await Promise.all(
        both.map((page, tab) =>
          page.evaluate(
            async ([dialect, url, tab]) => {
              const city = { type: 'object', properties: { city: { type: 'string' } } };
              const wait = () => new Promise((resolve) => setTimeout(resolve, 20));
              const tools = {
                get_weather: {
                  parameters: city,
                  execute: async () => {
                    await wait();
                    return `mild in tab ${tab}`;
                  },
                },
                get_time: {
                  parameters: city,
                  execute: async () => {
                    await wait();
                    return `noon in tab ${tab}`;
                  },
                },
              };
              const run = await session.run({
                input: `Tab ${tab}: Oslo?`,
                provider: { dialect, url, params: { model: 'm' }, stream: true },
                tools,
              });
              const { status, error, messageIds } = await drive(run).result;
              return { status, error, messageIds, run: run.id };
            },
            [dialect, dialect === 'anthropic' ? lanes[tab].messages : lanes[tab].chat, tab],
          ),
        ),
      );
      for (const { status, error } of results) assert.equal(status, 'finished', JSON.stringify(error));
      const seen = await inBoth(both, async () => {
        await session.refresh();
        const { items } = await session.messages();
        const calls = (await session.invocations({ payload: true })).items.toSorted((a, b) => a.turn - b.turn);
        return {
          ids: items.map(({ id }) => id),
          runs: items.map(({ runId }) => runId),
          turns: items.map(({ turn }) => turn),
          results: calls.map(({ result, turn }) => `${turn} ${result.content.slice(-5)}`),
        };
      });
      assert.deepEqual(seen[0], seen[1]);
      const [{ ids, runs, turns, results: said }] = seen;
      const order = runs[0] === results[0].run ? results : [results[1], results[0]];
      assert.deepEqual(
        ids,
        order.flatMap(({ messageIds }) => messageIds),
        'whole, not interleaved',
      );
      assert.deepEqual(turns, [0, 0, 0, 0, 1, 1, 1, 1]);
      const [first, second] = order[0] === results[0] ? ['tab 0', 'tab 1'] : ['tab 1', 'tab 0'];
      assert.deepEqual(
        said,
        [0, 0, 0].map((turn) => `${turn} ${first}`).concat([1, 1, 1].map((turn) => `${turn} ${second}`)),
      );
      const rendered = await both[1].evaluate(async (dialect) => {
        const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And?' });
        return {
          text: new TextDecoder().decode(body),
          findings: rethread.validate(body, dialect).filter(({ severity }) => severity === 'error'),
        };
      }, dialect);
      assert.deepEqual(rendered.findings, []);
      const answer = await fetch(dialect === 'anthropic' ? lanes[0].messages : lanes[0].chat, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
        body: rendered.text,
      });
      assert.equal(answer.status, 200, await answer.text());
    });
  }

  test('appends of another tab during a run stay outside its turn', async () => {
    const [one, two] = await tabs('mixed');
    const lane = world.lane('mixed');
    await lane.script([{ text: 'A slow answer.', gate: 'go', atPiece: 1 }]);
    const run = one.evaluate(async (url) => {
      const driven = drive(
        await session.run({
          input: 'Q',
          provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
        }),
      );
      return (await driven.result).status;
    }, lane.chat);
    while (!(await lane.waiting()).length) await new Promise((resolve) => setTimeout(resolve, 10));
    await two.evaluate(() => session.append({ messages: [{ role: 'user', content: 'meanwhile' }] }, 'openai-chat'));
    await lane.openGate('go');
    assert.equal(await run, 'finished');
    const seen = await inBoth([one, two], async () => {
      await session.refresh();
      return textsOf();
    });
    assert.deepEqual(seen[0], ['user: meanwhile', 'user: Q', 'assistant: A slow answer.']);
    assert.deepEqual(seen[1], seen[0]);
  });

  test('the run of another tab is live: it is visible, and busy for resume and discard', async () => {
    const [one, two] = await tabs('live');
    const lane = world.lane('live');
    await lane.script([{ text: 'One two three.', gate: 'go', atPiece: 1 }]);
    const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
    const id = await one.evaluate(async (provider) => {
      globalThis.run = await session.run({ input: 'Q', provider });
      globalThis.driven = drive(run);
      return run.id;
    }, provider);
    const facts = await two.evaluate(
      async ([id, provider]) => {
        const pending = await client.pendingRuns();
        return {
          pending: pending.map(({ id, state, session, input }) => ({ id, state, session, input: input.length })),
          resume: await caught(() => session.resume(id, { provider })),
          discard: await caught(() => session.discard(id)),
        };
      },
      [id, provider],
    );
    assert.deepEqual(facts.pending, [{ id, state: 'live', session: 's', input: 1 }]);
    assert.equal(facts.resume.code, 'busy');
    assert.equal(facts.discard.code, 'busy');
    await lane.openGate('go');
    assert.equal(await one.evaluate(async () => (await driven.result).status), 'finished');
    assert.deepEqual(await two.evaluate(() => session.pendingRuns()), []);
  });

  test('closing the store during a run releases the run: it can be resumed at once', async () => {
    const [page] = await tabs('closed');
    const lane = world.lane('closed');
    await lane.script([{ text: 'One two three.', gate: 'never', atPiece: 1 }, { text: 'Again.' }]);
    const facts = await page.evaluate(
      async (provider) => {
        globalThis.kept = await session.run({ input: 'Q', provider });
        const driven = drive(kept);
        await until(() => session.view().getSnapshot().messages.length === 2);
        await client.close();
        const end = await caught(() => driven.result);
        const other = await rethread.open({ name: 'closed' });
        const pending = await other.pendingRuns();
        const anew = await other.session('s');
        const resumed = await caught(
          async () => (await drive(await anew.resume(pending[0].id, { provider })).result).status,
        );
        return {
          end: end.code,
          states: pending.map(({ state }) => state),
          resumed,
          messages: (await anew.messages()).items.length,
        };
      },
      { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
    );
    assert.deepEqual(facts, {
      end: 'closed',
      states: ['interrupted'],
      resumed: { code: null, value: 'finished' },
      messages: 2,
    });
  });

  test('subscribe reports changes of another tab, for one session and for all', async () => {
    const [one, two] = await tabs('listen');
    await two.evaluate(() => {
      globalThis.heard = [];
      globalThis.touched = 0;
      globalThis.end = client.subscribe((change) => heard.push(change));
      session.subscribe(() => {
        touched += 1;
      });
    });
    await one.evaluate(async () => {
      await session.append({ messages: [{ role: 'user', content: 'hello' }] }, 'openai-chat');
      await (await client.session('other')).append(
        { messages: [{ role: 'user', content: 'elsewhere' }] },
        'openai-chat',
      );
      await client.deleteSession('other');
    });
    const facts = await two.evaluate(async () => {
      const all = await until(() => heard.some(({ deleted }) => deleted) && touched > 0);
      const kept = heard.length;
      end();
      return { all, heard: [...heard], kept, texts: await textsOf() };
    });
    assert.ok(facts.all, JSON.stringify(facts));
    assert.deepEqual(facts.heard, [
      { session: 's', revision: 1 },
      { session: 'other', revision: 1 },
      { session: 'other', revision: 0, deleted: true },
    ]);
    assert.deepEqual(facts.texts, ['user: hello'], 'without a refresh');
    await one.evaluate(() => session.append({ messages: [{ role: 'user', content: 'again' }] }, 'openai-chat'));
    assert.equal(
      await two.evaluate(async () => (await until(async () => (await textsOf()).length === 2)) && heard.length),
      facts.kept,
      'ended means ended',
    );
  });

  test('after a session is deleted in one tab, another one reads nothing and appends nothing', async () => {
    const [one, two] = await tabs('deleted');
    await two.evaluate(() => session.append({ messages: [{ role: 'user', content: 'old' }] }, 'openai-chat'));
    await one.evaluate(() => client.deleteSession('s'));
    const facts = await two.evaluate(async () => {
      await session.refresh();
      return {
        texts: await textsOf(),
        append: await caught(() => session.append({ messages: [{ role: 'user', content: 'new' }] }, 'openai-chat')),
        listed: (await client.sessions()).items.length,
      };
    });
    assert.deepEqual(facts.texts, []);
    assert.equal(facts.append.code, 'not_found');
    assert.equal(facts.listed, 0);
    const again = await one.evaluate(async () => {
      const fresh = await client.session('s');
      await fresh.append({ messages: [{ role: 'user', content: 'anew' }] }, 'openai-chat');
      return (await fresh.messages()).items.length;
    });
    assert.equal(again, 1);
    const read = await two.evaluate(
      async () => (await until(async () => (await textsOf())[0] === 'user: anew')) && session.revision,
    );
    assert.ok(read > 0, 'what was begun anew is shown');
  });

  test('with expectedRevision the second tab is rejected with conflict', async () => {
    const [one, two] = await tabs('expected');
    const append = (expectedRevision) =>
      session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat', { expectedRevision });
    assert.equal((await one.evaluate(append, 0)).revision, 1);
    const conflict = await two.evaluate(async () =>
      caught(() =>
        session.append({ messages: [{ role: 'user', content: 'y' }] }, 'openai-chat', { expectedRevision: 0 }),
      ),
    );
    assert.equal(conflict.code, 'conflict');
    assert.deepEqual(conflict.details, { expected: 0, revision: 1 });
    assert.equal((await two.evaluate(append, 1)).revision, 2);
  });

  test('r60 a question that is queued in another tab is stored after the answer of the first', async () => {
    const [one, two] = await tabs('queue');
    const provider = { dialect: 'openai-chat', url: 'https://model.test/v1/chat/completions', params: { model: 'm' } };
    const [first, second] = [one, two].map((page, at) =>
      page.evaluateHandle(
        async ([provider, at]) => {
          globalThis.events = [];
          const answer = (text) =>
            Response.json({
              choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
            });
          const run = await session.run({ input: `question ${at}`, provider, whenBusy: 'queue' });
          await new Promise((resolve) => setTimeout(resolve, 300));
          const { status } = await drive(run, { fetch: async () => answer(`answer ${at}`) }).result;
          return status;
        },
        [provider, at],
      ),
    );
    const statuses = await Promise.all([first, second].map(async (handle) => (await handle).jsonValue()));
    assert.deepEqual(statuses, ['finished', 'finished']);
    const texts = await two.evaluate(async () => {
      await session.refresh();
      return textsOf();
    });
    const [begun, then] = texts[0].includes('0') ? [0, 1] : [1, 0];
    assert.deepEqual(texts, [
      `user: question ${begun}`,
      `assistant: answer ${begun}`,
      `user: question ${then}`,
      `assistant: answer ${then}`,
    ]);
  });

  test('a tool result appended in one tab is assigned to a call of another tab', async () => {
    const [one, two] = await tabs('result');
    await one.evaluate(() =>
      session.append(
        {
          messages: [
            { role: 'user', content: 'q' },
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
            },
          ],
        },
        'openai-chat',
      ),
    );
    await two.evaluate(() =>
      session.append({ messages: [{ role: 'tool', tool_call_id: 'call_1', content: 'r' }] }, 'openai-chat'),
    );
    const facts = await two.evaluate(async () => ({
      rows: (await session.invocations({ payload: true })).items.map(({ status, result }) => [status, result.content]),
      warnings,
    }));
    assert.deepEqual(facts, { rows: [['ok', 'r']], warnings: [] });
  });
});
