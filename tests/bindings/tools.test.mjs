// Tools whose `parameters` are a schema of zod, valibot or arktype: the schema in the request, and how its arguments
// are validated.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import { defineTool, open } from 'rethread';
import { drive } from 'rethread/host';
import * as v from 'valibot';
import { z } from 'zod';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

/** The same schema in three libraries: a city, and days as a text that becomes a number. */
const LIBRARIES = {
  zod: z.object({ city: z.string().min(2), days: z.string().transform(Number).optional() }),
  valibot: toStandardJsonSchema(
    v.object({ city: v.pipe(v.string(), v.minLength(2)), days: v.optional(v.pipe(v.string(), v.transform(Number))) }),
  ),
  arktype: type({ city: 'string >= 2', 'days?': type('string').pipe((text) => Number(text)) }),
};
const JSON_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 2 }, days: { type: 'string' } },
  required: ['city'],
};
const JSON_TEXT = { type: 'object', properties: { city: { type: 'string' } } };

async function session(options) {
  const store = await open({ store: 'memory', ...options });
  return { store, session: await store.session('s') };
}

let lanes = 0;
async function chat(steps) {
  const lane = laneOf(standIn.url, `tools-${(lanes += 1)}`);
  await lane.script(steps);
  return {
    lane,
    ...(await session()),
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
  };
}

/** Runs a turn in which the model calls `f` once for each of `given`. Returns the tool messages of the last request,
 *  and the result of the run. */
async function calls(tool, given, options) {
  const { lane, session, provider } = await chat([
    { calls: given.map((args) => ({ name: 'f', arguments: args })) },
    { text: 'Done.' },
  ]);
  const run = await session.run({ input: 'x', provider, tools: { f: tool } });
  const driven = drive(run, options);
  const events = [];
  for await (const event of driven) events.push(event);
  const result = await driven.result;
  const requests = await lane.requests();
  const toolMessages = requests
    .at(-1)
    .body.messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);
  return { result, events, toolMessages, session, tool: requests[0].body.tools[0], run };
}

test('r55 the request contains the JSON Schema of a Standard Schema, in each dialect', async () => {
  const { store, session: own } = await session();
  for (const [library, parameters] of Object.entries(LIBRARIES)) {
    for (const [dialect, schemaOf] of Object.entries({
      'openai-chat': ({ tools }) => tools[0].function.parameters,
      'openai-responses': ({ tools }) => tools[0].parameters,
      anthropic: ({ tools }) => tools[0].input_schema,
      mistral: ({ tools }) => tools[0].function.parameters,
    })) {
      const { body } = await own.render({
        dialect,
        params: { model: 'm', max_tokens: 9 },
        input: 'x',
        tools: { f: { description: 'F.', parameters } },
      });
      assert.deepEqual(schemaOf(JSON.parse(new TextDecoder().decode(body))), JSON_SCHEMA, `${library}, ${dialect}`);
    }
    const { body } = await own.render({ dialect: 'gemini', params: {}, input: 'x', tools: { f: { parameters } } });
    const [
      {
        functionDeclarations: [declaration],
      },
    ] = JSON.parse(new TextDecoder().decode(body)).tools;
    assert.equal(JSON.stringify(declaration).includes('city'), true, library);
    assert.equal(JSON.stringify(declaration).includes('$schema'), false, library);
  }
  await store.close();
});

for (const [library, parameters] of Object.entries(LIBRARIES)) {
  test(`r55 ${library}: valid arguments reach \`execute\` as the schema gives them, invalid ones are reported to the model and the tool does not run`, {
    timeout: 10_000,
  }, async () => {
    const ran = [];
    const tool = defineTool({
      parameters,
      execute: (args, { argumentsText }) => ran.push([args, argumentsText]) && `${args.city}: ${args.days}`,
    });
    const {
      toolMessages,
      events,
      result,
      session,
      tool: sent,
      run,
    } = await calls(tool, [{ city: 'Rome', days: '3' }, { city: 'X' }, { days: '3' }]);
    assert.deepEqual(ran, [[{ city: 'Rome', days: 3 }, '{"city":"Rome","days":"3"}']], "the transform's output");
    assert.equal(toolMessages[0], 'Rome: 3');
    for (const refusal of toolMessages.slice(1))
      assert.match(
        refusal,
        /^Error: the arguments are not valid, so the tool was not run\. .*city.*\. Call it again with valid arguments\.$/,
      );
    assert.equal(result.status, 'finished');
    assert.deepEqual(
      events
        .filter(({ type: kind }) => kind === 'tool_finished')
        .map(({ isError }) => isError)
        .toSorted(),
      [false, true, true],
    );
    assert.equal(events.filter(({ type: kind }) => kind === 'tool_started').length, 1);
    const rows = (await session.invocations({ payload: true })).items.toSorted(
      (a, b) => a.sequenceIndex - b.sequenceIndex,
    );
    assert.deepEqual(
      rows.map(({ status }) => status),
      ['ok', 'error', 'error'],
    );
    assert.deepEqual(rows[0].arguments, { city: 'Rome', days: '3' }, 'what is stored is what the model wrote');
    assert.deepEqual(sent.function.parameters, JSON_SCHEMA);
    assert.equal(run.tools.f, tool, 'the run has the tool that was given');
  });
}

test('r55 validation can be asynchronous, fail, and time out', { timeout: 10_000 }, async () => {
  const known = z.object({
    id: z.string().refine(async (id) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (id === 'slow') await new Promise(() => {});
      return id === 'a';
    }, 'no such order'),
  });
  const standard = known['~standard'];
  const validate = (value) =>
    value.id === 'broken' ? Promise.reject(new Error('the database is away')) : standard.validate(value);
  const parameters = { '~standard': { ...standard, jsonSchema: standard.jsonSchema, validate } };
  const ran = [];
  const { toolMessages } = await calls(
    { parameters, execute: ({ id }) => ran.push(id) && 'yes' },
    ['a', 'b', 'broken', 'slow'].map((id) => ({ id })),
    { toolTimeoutMs: 100 },
  );
  assert.deepEqual(ran, ['a']);
  assert.equal(toolMessages[0], 'yes');
  assert.match(toolMessages[1], /id: no such order/);
  assert.match(
    toolMessages[2],
    /^Error: the arguments could not be validated, so the tool was not run: the database is away/,
  );
  assert.match(toolMessages[3], /^Error: the arguments were not validated within 100 ms/);
});

test('r55 an issue is reported with its path, and of a thousand issues only the first ones', {
  timeout: 10_000,
}, async () => {
  const parameters = z.object({ items: z.array(z.object({ 'the name': z.string() })), note: z.string().optional() });
  const { toolMessages } = await calls({ parameters, execute: () => 'ran' }, [
    { items: [{ 'the name': 'x' }, { 'the name': 5 }] },
    { items: Array.from({ length: 1000 }, () => ({})) },
  ]);
  assert.match(toolMessages[0], /items\[1\]\.the name: /);
  assert.match(toolMessages[1], /and 980 more/);
  assert.ok(toolMessages[1].length < 3000);
});

test('r55 a call that the application answers is validated as well', { timeout: 10_000 }, async () => {
  const { session, provider, lane } = await chat([
    { calls: [{ name: 'form', arguments: {} }] },
    { calls: [{ name: 'form', arguments: { ask: 'name' } }] },
    { text: 'Done.' },
  ]);
  const run = await session.run({
    input: 'x',
    provider,
    tools: { form: { parameters: z.object({ ask: z.string() }) } },
  });
  const driven = drive(run);
  const effect = await until(() =>
    run.effects().find(({ type: kind, arguments: args }) => kind === 'run_tool' && args.ask),
  );
  await run.answer(effect.id, { type: 'tool_result', content: 'Ann' });
  assert.equal((await driven.result).status, 'finished');
  const toolMessages = (await lane.requests())
    .at(-1)
    .body.messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);
  assert.match(toolMessages[0], /not valid.*ask/);
  assert.equal(toolMessages[1], 'Ann');
});

test('r55 a tool of a class keeps its methods and its private members', { timeout: 10_000 }, async () => {
  class Weather {
    #unit = 'C';
    parameters = LIBRARIES.zod;
    description = 'Weather.';
    execute({ city }) {
      return `${city} 21 ${this.#unit}`;
    }
    persist() {
      return { result: '(gone)' };
    }
  }
  const { toolMessages, tool, session } = await calls(new Weather(), [{ city: 'Rome' }]);
  assert.deepEqual(toolMessages, ['Rome 21 C']);
  assert.equal(tool.function.description, 'Weather.');
  assert.equal((await session.invocations({ payload: true })).items[0].result.content, '(gone)');
});

test('r55 a resumed run validates as well', { timeout: 10_000 }, async () => {
  const { session, provider, lane } = await chat([
    { calls: [{ name: 'f', arguments: { city: 'X' } }] },
    { status: 400, text: 'no' },
    { calls: [{ name: 'f', arguments: { city: 'Y' } }] },
    { text: 'Done.' },
  ]);
  const ran = [];
  const tools = { f: { parameters: LIBRARIES.zod, execute: (args) => ran.push(args) } };
  const first = await session.run({ input: 'x', provider, tools: { f: { parameters: JSON_TEXT } } });
  const stop = new AbortController();
  const driven = drive(first, { signal: stop.signal });
  for await (const event of driven) if (event.type === 'tool_call_ready') break;
  first.answer((await until(() => first.effects().find(({ type: kind }) => kind === 'run_tool'))).id, {
    type: 'tool_result',
    content: 'by hand',
  });
  assert.equal((await driven.result).status, 'failed');
  const [pending] = await session.pendingRuns();
  const { result } = drive(await session.resume(pending.id, { provider, tools }));
  assert.equal((await result).status, 'finished');
  const {
    tools: [definition],
    messages,
  } = (await lane.requests()).at(-1).body;
  assert.deepEqual(definition.function.parameters, JSON_SCHEMA);
  assert.match(messages.at(-1).content, /not valid/);
  assert.deepEqual(ran, []);
});

test('r55 `jsonSchema` replaces a schema without a JSON Schema', { timeout: 10_000 }, async () => {
  const plain = v.object({ city: v.pipe(v.string(), v.minLength(2)) });
  const ran = [];
  const { tool, toolMessages } = await calls(
    { parameters: plain, jsonSchema: JSON_TEXT, execute: ({ city }) => ran.push(city) && city },
    [{ city: 'Rome' }, { city: 'X' }],
  );
  assert.deepEqual(tool.function.parameters, JSON_TEXT);
  assert.deepEqual(ran, ['Rome']);
  assert.match(toolMessages[1], /^Error: the arguments are not valid.*city/);
});

test('r55 a schema without a JSON Schema is `config_invalid`, and the message says what to pass', async () => {
  const { store, session: own } = await session();
  const standard = (extra) => ({
    '~standard': { version: 1, vendor: 'own', validate: (value) => ({ value }), ...extra },
  });
  const throws = () => {
    throw new Error('not today');
  };
  for (const [what, parameters, words] of [
    ['valibot alone', v.object({ city: v.string() }), /toStandardJsonSchema/],
    ['no JSON Schema', standard(), /`jsonSchema`/],
    ['a date', z.object({ on: z.date() }), /Date cannot be represented/],
    ['a text', z.string(), /arguments must be an object/],
    ['a list', type('string[]'), /arguments must be an object/],
    ['one that throws', standard({ jsonSchema: { input: throws } }), /not today/],
    ['one that gives nothing', standard({ jsonSchema: { input: () => null } }), /`jsonSchema`/],
    ['an old zod', { _def: {}, safeParse: () => {} }, /Standard Schema/],
    ['a function', () => {}, /Standard Schema/],
    ['a string', 'object', /Standard Schema/],
    ['a list of them', [JSON_TEXT], /Standard Schema/],
  ]) {
    const tools = { f: { parameters } };
    await assert.rejects(
      own.render({ dialect: 'anthropic', params: { model: 'm', max_tokens: 5 }, input: 'x', tools }),
      { name: 'RethreadError', code: 'config_invalid', message: words },
      what,
    );
    await assert.rejects(
      own.run({
        input: 'x',
        provider: { dialect: 'anthropic', url: 'https://example.com', params: { model: 'm', max_tokens: 5 } },
        tools,
      }),
      { code: 'config_invalid', message: words },
      what,
    );
  }
  assert.deepEqual(await own.pendingRuns(), []);
  assert.throws(() => defineTool(), { code: 'config_invalid' });
  await store.close();
});

test('r62 a hostile schema does not stop a run', { timeout: 10_000 }, async () => {
  const json = { jsonSchema: { input: () => JSON_TEXT } };
  const standard = (validate) => ({ '~standard': { version: 1, vendor: 'own', validate, ...json } });
  for (const validate of [
    () => {
      throw {
        get message() {
          throw new Error('trap');
        },
      };
    },
    () => null,
    () => Promise.reject(),
    () => ({ issues: 5 }),
    () => ({ issues: [null, { message: 7, path: 9 }, { path: [Symbol('s'), null, { key: 1 }] }] }),
    () =>
      new Proxy(
        {},
        {
          get() {
            throw 1;
          },
        },
      ),
    () => ({
      get issues() {
        throw new Error('trap');
      },
    }),
  ]) {
    const { result, toolMessages } = await calls(
      { parameters: standard(validate), execute: () => assert.fail('it ran') },
      [{ city: 'x' }],
    );
    assert.equal(result.status, 'finished', String(validate));
    assert.match(toolMessages[0], /^Error: the arguments /, String(validate));
  }
});
