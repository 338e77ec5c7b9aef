// Functions of the host: the options name them, and the engine asks for their calls by effects.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { loadComponent } from './component.mjs';
import { memoryKeyvalue } from './keyvalue.mjs';
import { moment, newStore, SETTINGS, stepper } from './stepping.mjs';

const worlds = {};
before(async () => {
  worlds.engine = await loadComponent('engine');
  worlds.stored = await loadComponent('stored', memoryKeyvalue());
});
after(() => {
  for (const { remove } of Object.values(worlds)) remove();
});

const URL = 'http://127.0.0.1:1/v1/chat/completions';
const provider = { dialect: 'openai-chat', url: URL, params: { model: 'm' } };
const answerOf = (message) => ({
  status: 200,
  headers: [],
  body: Buffer.from(
    JSON.stringify({ choices: [{ index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }] }),
  ),
});

for (const world of ['engine', 'stored'])
  describe(`the world \`${world}\``, () => {
    let engine;
    let driven;
    let engines = 0;
    /** A new engine over a new store. */
    const begin = () => {
      const { Engine } = worlds[world].exports.sessions;
      engines += 1;
      engine = Engine.open({ ...SETTINGS, name: `functions-${engines}` }, moment());
      driven = stepper(engine, newStore());
    };
    /** Steps until an effect of a kind is open, and takes it. */
    const effect = (tag) => {
      for (let steps = 0; steps < 100; steps += 1) {
        const at = driven.opened.findIndex(({ kind }) => kind.tag === tag);
        if (at >= 0) return driven.opened.splice(at, 1)[0];
        driven.step();
      }
      assert.fail(`no effect ${tag}`);
    };
    const answer = (id, tag, val) => engine.answer(id, { tag, val });
    /** Begins a command: returns a function that steps until it ended, and returns its outcome or throws its error. */
    const begun = (tag, val) => {
      const operation = engine.begin({ tag, val });
      return () => {
        for (let steps = 0; steps < 100; steps += 1) {
          const ended = driven.step().ended.find((one) => one.operation === operation);
          if (ended?.outcome.tag === 'err') throw ended.outcome.val;
          if (ended) return ended.outcome.val.val;
        }
        return assert.fail(`${tag} never ends`);
      };
    };
    const request = (options) => ({ session: 's', options: JSON.stringify(options) });
    const append = (turns) => {
      const messages = turns.flatMap((text) => [
        { role: 'user', content: text },
        { role: 'assistant', content: `Yes, ${text}` },
      ]);
      const body = Buffer.from(JSON.stringify({ messages }));
      driven.command('append', { session: 's', body, dialect: 'openai-chat' });
    };
    const textsOf = (body) => JSON.parse(Buffer.from(body)).messages.map(({ content }) => content);

    test('r36 r51 a custom reducer chooses what is sent, and one that fails is skipped', () => {
      begin();
      append(['one', 'two']);
      const replay = { reducers: [{ type: 'custom', reduce: 'newest' }] };
      const run = driven.command('run', request({ provider, input: 'And now?', replay }));
      const { id, kind } = effect('ask');
      assert.equal(kind.val.function, 'newest');
      assert.equal(kind.val.question.tag, 'reduce');
      const messages = JSON.parse(kind.val.question.val);
      answer(id, 'returned', JSON.stringify(messages.slice(-3)));
      assert.deepEqual(textsOf(effect('call-model').kind.val.body), ['two', 'Yes, two', 'And now?']);
      driven.command('cancel', run);

      const other = driven.command('run', request({ provider, input: 'And now?', replay }));
      answer(effect('ask').id, 'failed', { message: 'it is broken' });
      assert.equal(textsOf(effect('call-model').kind.val.body).length, 5, 'it is skipped');
      const { report } = JSON.parse(engine.runState(other).result);
      assert.match(report.find(({ code }) => code === 'callback_failed').message, /`newest`: it is broken/);
    });

    test('r24 r51 an input filter changes what is sent and not what is stored', () => {
      begin();
      const run = driven.command('run', request({ provider, input: 'Call 555.', inputFilter: 'withoutNumbers' }));
      const { id, kind } = effect('ask');
      assert.equal(kind.val.question.tag, 'filter-body');
      answer(id, 'returned', kind.val.question.val.replace('555', '***'));
      const { id: call, kind: model } = effect('call-model');
      assert.deepEqual(textsOf(model.val.body), ['Call ***.']);
      answer(call, 'response', answerOf({ role: 'assistant', content: 'Done.' }));
      for (let steps = 0; steps < 20; steps += 1) driven.step();
      assert.equal(engine.runState(run).status, 'finished');
      const { items } = driven.command('messages', { session: 's' });
      assert.deepEqual(
        JSON.parse(items).map(({ parts }) => parts[0].text),
        ['Call 555.', 'Done.'],
      );
    });

    test('r29 r51 a function decides whether a call needs an approval', () => {
      begin();
      const tools = { pay: { parameters: { type: 'object' }, needsApproval: 'isLarge' } };
      const run = driven.command('run', request({ provider, input: 'Pay.', tools }));
      const tool_calls = ['1', '1000'].map((amount) => ({
        id: `pay-${amount}`,
        type: 'function',
        function: { name: 'pay', arguments: `{"amount":${amount}}` },
      }));
      answer(effect('call-model').id, 'response', answerOf({ role: 'assistant', content: null, tool_calls }));
      for (const _ of tool_calls) {
        const { id, kind } = effect('ask');
        assert.equal(kind.val.function, 'isLarge');
        answer(id, 'returned', JSON.stringify(JSON.parse(kind.val.question.val).amount > 100));
      }
      assert.equal(effect('run-tool').kind.val.callId, 'pay-1');
      for (let steps = 0; steps < 20; steps += 1) driven.step();
      const waiting = JSON.parse(engine.runState(run).approvals);
      assert.deepEqual(
        waiting.map(({ callId }) => callId),
        ['pay-1000'],
      );
    });

    test('r30 r51 compact asks for a summary, which requests then begin with', () => {
      begin();
      append(Array.from({ length: 12 }, (_, at) => `question ${at}`));
      const ended = begun('compact', request({ summarize: 'brief', dialect: 'openai-chat', params: { model: 'm' } }));
      const { id, kind } = effect('ask');
      assert.deepEqual(
        [kind.val.function, kind.val.question.tag, kind.val.question.val.mode],
        ['brief', 'summarize', 'input'],
      );
      assert.ok(JSON.parse(kind.val.question.val.body).messages.length > 20);
      answer(id, 'returned', '"Twelve questions were answered."');
      assert.deepEqual(JSON.parse(ended()), { compacted: true, reason: 'threshold' });
      const { body } = driven.command('render', request({ dialect: 'openai-chat', input: 'And now?' }));
      const texts = textsOf(body);
      assert.equal(texts.length, 2);
      assert.match(texts[0], /Twelve questions were answered/);

      append(Array.from({ length: 12 }, (_, at) => `later ${at}`));
      const failed = begun('compact', request({ summarize: 'brief', dialect: 'openai-chat' }));
      answer(effect('ask').id, 'returned', '{"not":"a text"}');
      assert.throws(failed, ({ code }) => code === 'callback_failed');
    });

    test('r31 r51 a run is handed off to another agent by a command', () => {
      begin();
      const tools = { look: { parameters: { type: 'object' } } };
      const first = { provider, input: 'Hello.', instructions: 'You are the first.', tools };
      const run = driven.command('run', request(first));
      const tool_calls = [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }];
      answer(effect('call-model').id, 'response', answerOf({ role: 'assistant', content: null, tool_calls }));
      const agent = JSON.stringify({ name: 'second', instructions: 'You are the second.' });
      const tool = effect('run-tool');
      driven.command('hand-off', { run, agent });
      answer(tool.id, 'started');
      driven.step();
      answer(tool.id, 'tool-result', { content: '"seen"', isError: false });
      assert.equal(textsOf(effect('call-model').kind.val.body)[0], 'You are the second.');
    });

    test('r51 r62 what a run asked is closed with the run, and a text that is not JSON leaves it open', () => {
      begin();
      const run = driven.command('run', request({ provider, input: 'Hello.', inputFilter: 'slow' }));
      const { id } = effect('ask');
      assert.throws(
        () => answer(id, 'returned', 'no JSON'),
        ({ code, payload }) => (payload?.code ?? code) === 'invalid_input',
      );
      assert.ok(engine.effects().some((one) => one.id === id));
      driven.command('cancel', run);
      for (let steps = 0; steps < 20; steps += 1) driven.step();
      assert.deepEqual(engine.effects(), []);
      assert.throws(
        () => answer(id, 'returned', '{}'),
        ({ code, payload }) => (payload?.code ?? code) === 'wrong_state',
      );
    });

    test('r51 r62 functions that must answer at once are refused, and so is what is no name', () => {
      begin();
      const refused = (options) =>
        assert.throws(
          () => driven.command('run', request({ provider, input: 'Hi.', ...options })),
          ({ code }) => code === 'config_invalid',
          JSON.stringify(options),
        );
      refused({ tools: { t: { persist: 'f' } } });
      refused({ retry: { approveUnsafeReplay: 'f' } });
      refused({ inputFilter: 7 });
      refused({ inputFilter: '' });
      refused({ tools: { t: { needsApproval: [] } } });
      refused({ tools: { t: { needsApproval: 'false' } } });
    });
  });
