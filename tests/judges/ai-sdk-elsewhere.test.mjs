// r53: answers that another process makes, as two openings of one store have them: what a page and a stop learn.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { open } from 'rethread';
import { chatHandler, sessionTransport } from 'rethread/ai-sdk';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { until } from './ai-sdk-chat.mjs';

const HOLDER = 'rethread/ai-sdk:holder';
const user = (id, text) => ({ id, role: 'user', parts: [{ type: 'text', text }] });

/** The session as `count` processes have it. */
async function openings(count, { store = new MemoryLogStore(), ...options } = {}) {
  const clients = await Promise.all(Array.from({ length: count }, () => open({ store, ...options })));
  return Promise.all(clients.map((client) => client.session('chat')));
}

/** A store over what another one has, whose reads fail while `failing` is true. */
class OtherStore extends MemoryLogStore {
  failing = false;

  constructor({ stored }) {
    super();
    this.stored = stored;
  }

  head(...args) {
    if (this.failing) throw new Error('no route to the database');
    return super.head(...args);
  }
}

/** Marks the session as a process does that makes an answer, and looks at nothing. */
async function heldBySilent(session) {
  const hold = { holder: 'silent', id: 'a1', branch: session.branch, until: Date.now() + 60_000 };
  session.state.set(HOLDER, hold);
  await session.save();
}

/** A transport whose answers are streams that the test writes, and what each answer was asked with. */
function written(session) {
  const asked = [];
  const answer = (request) => new ReadableStream({ start: (controller) => asked.push({ ...request, controller }) });
  return { transport: sessionTransport(session, { answer }), asked };
}

describe('answers of another process', { timeout: 60_000, concurrency: true }, () => {
  test('r53 a stop of an answer whose holder does not confirm it says that it was asked, and no more', async () => {
    const [silent, session] = await openings(2);
    await heldBySilent(silent);
    const handler = chatHandler({ session: () => session, answer: () => assert.fail('nobody asks') });
    const stop = () => handler(new Request('https://server.test/api/chat/chat/stop', { method: 'POST' }));
    const { transport } = written(session);
    const [outcome, response] = await Promise.all([transport.stop(), stop()]);
    assert.deepEqual([outcome, response.status], ['asked', 202]);
    assert.match(await response.text(), /has not confirmed/);
    // Its holder has ended it.
    silent.state.set(HOLDER, { ...silent.state.get(HOLDER), until: 0 });
    await silent.refresh();
    await silent.save();
    assert.deepEqual([await transport.stop(), (await stop()).status], [false, 204]);
  });

  test('r53 a question that takes the place of an answer elsewhere says whether that has ended', async () => {
    const [silent, session] = await openings(2);
    await heldBySilent(silent);
    const { transport, asked } = written(session);
    const messages = [user('u1', 'hi')];
    await transport.sendMessages({ messages, trigger: 'submit-message' });
    await transport.sendMessages({ messages: [...messages, user('u2', 'hello?')], trigger: 'submit-message' });
    assert.deepEqual(
      asked.map(({ mayOverlap }) => mayOverlap),
      [true, false],
    );
    const elsewhere = written(silent);
    await silent.refresh();
    await elsewhere.transport.sendMessages({ messages: [user('u3', 'you?')], trigger: 'submit-message' });
    assert.deepEqual([asked[1].abortSignal.aborted, elsewhere.asked[0].mayOverlap], [true, false]);
    assert.equal(await transport.stop(), true);
  });

  test('r53 an answer whose place was taken begins no tool, though its process has not looked since', async () => {
    const [holder, other] = await openings(2);
    const ran = [];
    const tools = { pay: { inputSchema: {}, execute: () => ran.push('pay') } };
    let begun;
    const answer = (request) => new ReadableStream({ start: (controller) => (begun = { ...request, controller }) });
    const transport = sessionTransport(holder, { tools, answer });
    await transport.sendMessages({ messages: [user('u1', 'pay')], trigger: 'submit-message' });
    const { controller, tools: durable, abortSignal } = begun;
    const call = { toolCallId: 'c1', toolName: 'pay' };
    controller.enqueue({ type: 'start' });
    controller.enqueue({ type: 'start-step' });
    controller.enqueue({ type: 'tool-input-available', ...call, input: {} });
    await other.refresh();
    await heldBySilent(other);
    await assert.rejects(durable.pay.execute({}, { toolCallId: 'c1', messages: [], abortSignal }), {
      name: 'AbortError',
    });
    assert.deepEqual(ran, []);
  });

  /** A page that follows an answer, and what happens elsewhere between two of its looks. */
  async function followed(session) {
    const reader = (await sessionTransport(session, { answer: () => assert.fail() }).reconnectToStream({})).getReader();
    const came = [];
    const read = async (type) => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        came.push(next.value);
        if (next.value.type === type) return;
      }
    };
    /** While `work` runs the page does not look. */
    const betweenLooks = async (work) => {
      const { refresh } = session;
      let isWaiting;
      const waits = new Promise((resolve) => (isWaiting = resolve));
      let go;
      const goes = new Promise((resolve) => (go = resolve));
      session.refresh = async () => {
        isWaiting();
        await goes;
        return refresh.call(session);
      };
      await waits;
      await work();
      delete session.refresh;
      go();
    };
    return { came, read, betweenLooks };
  }

  const begun = [{ type: 'start' }, { type: 'start-step' }, { type: 'text-start', id: 't' }];
  const rest = [{ type: 'text-end', id: 't' }, { type: 'finish-step' }, { type: 'finish' }];
  const delta = (text) => ({ type: 'text-delta', id: 't', delta: text });
  const write = ({ controller }, ...chunks) => {
    for (const chunk of chunks.flat()) controller.enqueue(chunk);
  };
  const readAll = async (stream) => {
    for await (const _ of stream);
  };
  /** Counts the looks at a session that fail. */
  function failedLooks(session) {
    const looks = { count: 0 };
    const { refresh } = session;
    session.refresh = async () => {
      try {
        return await refresh.call(session);
      } catch (error) {
        looks.count += 1;
        throw error;
      }
    };
    return looks;
  }
  const textOf = (chunks) => chunks.map(({ delta: text = '' }) => text).join('');

  test('r53 an answer that ends just before the next one begins is followed to its end', async () => {
    const [session, other] = await openings(2);
    const { transport, asked } = written(session);
    const messages = [user('u1', 'hi')];
    const first = readAll(await transport.sendMessages({ messages, trigger: 'submit-message' }));
    write(asked[0], begun, delta('Hel'));
    await other.refresh();
    const page = await followed(other);
    await page.read('text-delta');
    await page.betweenLooks(async () => {
      write(asked[0], delta('lo'), rest);
      asked[0].controller.close();
      await first;
      await transport.sendMessages({ messages: [...messages, user('u2', 'more')], trigger: 'submit-message' });
    });
    await page.read('never');
    assert.deepEqual([textOf(page.came), page.came.at(-1).type], ['Hello', 'finish']);

    // One that another question has ended is none that has finished.
    const second = await followed(other);
    write(asked[1], begun, delta('Hel'));
    await second.read('text-delta');
    await second.betweenLooks(async () => {
      await transport.sendMessages({ messages: [...messages, user('u3', 'else')], trigger: 'submit-message' });
    });
    await second.read('never');
    assert.deepEqual([textOf(second.came), second.came.at(-1).type], ['Hel', 'abort']);
  });

  test('r53 another answer that ends just before the next one begins is found in the branch that it has begun', async () => {
    const [session, other] = await openings(2);
    const { transport, asked } = written(session);
    const messages = [user('u1', 'hi')];
    const answered = async (at, text, request) => {
      const stream = await transport.sendMessages({ messages, trigger: 'submit-message', ...request });
      write(asked[at], begun, delta(text), rest);
      asked[at].controller.close();
      await readAll(stream);
    };
    await answered(0, 'One');
    const stream = await transport.sendMessages({ messages, trigger: 'regenerate-message' });
    await other.refresh();
    const page = await followed(other);
    await page.betweenLooks(async () => {
      write(asked[1], begun, delta('Two'), rest);
      asked[1].controller.close();
      await readAll(stream);
      await transport.sendMessages({ messages, trigger: 'regenerate-message' });
    });
    await page.read('never');
    assert.deepEqual([textOf(page.came), page.came.at(-1)?.type], ['Two', 'finish']);
    await transport.stop();
  });

  test('r53 a page goes on with an answer elsewhere after reads that failed, and ends with their error if they do not end', async () => {
    const store = new MemoryLogStore();
    const otherStore = new OtherStore(store);
    const [session] = await openings(1, { store });
    const [other] = await openings(1, { store: otherStore, leaseMs: 1000 });
    const { transport, asked } = written(session);
    const stream = await transport.sendMessages({ messages: [user('u1', 'hi')], trigger: 'submit-message' });
    write(asked[0], begun, delta('Hel'));
    await other.refresh();
    const page = await followed(other);
    await page.read('text-delta');
    otherStore.failing = true;
    write(asked[0], delta('lo'), rest[0]);
    const looks = failedLooks(other);
    await until(() => looks.count >= 2);
    otherStore.failing = false;
    await page.read('text-end');
    assert.equal(textOf(page.came), 'Hello');

    const handler = chatHandler({ session: () => other, answer: () => assert.fail() });
    const response = await handler(new Request('https://server.test/api/chat/chat/stream'));
    otherStore.failing = true;
    await assert.rejects(page.read('never'), {
      name: 'RethreadError',
      code: 'store_error',
      message: /^what another process has stored of the answer cannot be read: .*no route to the database/,
    });
    const events = (await response.text()).split('\n\n').filter(Boolean);
    assert.match(events.at(-2), /^data: {"type":"error","errorText":"store_error: what another process has stored/);
    assert.equal(events.at(-1), 'data: [DONE]');
    otherStore.failing = false;
    await transport.stop();
    await readAll(stream);
  });

  test('r53 a page whose store is closed ends with that error at once', async () => {
    const store = new MemoryLogStore();
    const [session] = await openings(1, { store });
    const client = await open({ store });
    const other = await client.session('chat');
    const { transport, asked } = written(session);
    await transport.sendMessages({ messages: [user('u1', 'hi')], trigger: 'submit-message' });
    write(asked[0], begun, delta('Hel'));
    await other.refresh();
    const page = await followed(other);
    await page.read('text-delta');
    const looks = failedLooks(other);
    client.close();
    await assert.rejects(page.read('never'), { name: 'RethreadError', code: 'closed' });
    assert.ok(looks.count <= 1, 'it has looked again'); // the one before may have been under way
    await transport.stop();
  });
});
