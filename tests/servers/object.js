// A Durable Object that keeps one chat, as requests that come at the same time and instances that come after each other
// use it.

import { DurableObject } from 'cloudflare:workers';
import { open } from '../../js/entry/workerd.js';
import { durableObject } from '../../js/stores/cloudflare.js';
import { drive } from '../../js/host.js';
import { outageOf } from '../bindings/scenarios/outages.mjs';
import { allTexts } from './texts.mjs';

const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: 'http://localhost/v1/chat/completions' };
const completion = (content) =>
  JSON.stringify({
    id: 'r',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  });
const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
const states = async (store) => (await store.pendingRuns()).map(({ state }) => state);

export class Chat extends DurableObject {
  #open = () => open({ store: durableObject(this.ctx.storage) });

  async append(writer, count) {
    const store = await this.#open();
    const session = await store.session('shared');
    for (let number = 0; number < count; number += 1) {
      await session.append(message(`${writer}:${number}`));
      // The storage is synchronous: nothing else would let the other request in.
      await scheduler.wait(0);
    }
    await store.close();
  }

  async texts(id) {
    const store = await this.#open();
    const texts = await allTexts(await store.session(id));
    await store.close();
    return texts;
  }

  /** Begins a run that waits for its model. A second store of this instance sees that it is under way. */
  async begin() {
    this.kept = await this.#open();
    const run = await (await this.kept.session('run')).run({ input: 'q', provider });
    const beside = await this.#open();
    const resumed = await (await beside.session('run')).resume(run.id, { provider }).then(
      () => null,
      ({ code }) => code,
    );
    const found = { id: run.id, states: await states(beside), resumed };
    await beside.close();
    return found;
  }

  async resume(id) {
    const store = await this.#open();
    const before = await states(store);
    const run = await (await store.session('run')).resume(id, { provider });
    const effect = run.effects().find(({ type }) => type === 'call_model');
    await run.answer(effect.id, { type: 'response', status: 200, body: completion('after the eviction') });
    const { status } = run.result();
    await store.close();
    return { before, status };
  }

  /** A store that listens hears what another one of this object appends and deletes. */
  async hear() {
    const [one, two] = [await this.#open(), await this.#open()];
    const session = await two.session('heard');
    const changes = [];
    let next;
    two.subscribe((change) => {
      changes.push(change);
    });
    const changed = () =>
      new Promise((resolve) => {
        next = resolve;
      });
    session.subscribe(() => next?.());
    const heard = changed();
    await (await one.session('heard')).append(message('hello'));
    await heard;
    const texts = await allTexts(session);
    const gone = changed();
    await one.deleteSession('heard');
    await gone;
    await Promise.all([one.close(), two.close()]);
    return { texts, changes };
  }

  /** A run through an outage: for a while the storage rejects each transaction that writes. */
  async outage(at) {
    let isAway = false;
    const driver = durableObject(this.ctx.storage);
    const transaction = (statements) => {
      if (isAway && statements.some(({ sql }) => !/^\s*(SELECT|WITH)/i.test(sql)))
        throw new Error('the storage is away');
      return driver.transaction(statements);
    };
    const openStore = () => open({ store: { ...driver, transaction } });
    const outage = {
      at,
      begin: () => {
        isAway = true;
      },
      end: () => {
        isAway = false;
      },
      lastsMs: 700,
    };
    const { result, events, ran, session, client } = await outageOf({ open: openStore, drive }, outage);
    const roles = (await session.messages()).items.map(({ role }) => role);
    await client.deleteSession('s');
    await client.close();
    return { status: result.status, ran, failed: events.some(({ type }) => type === 'save_failed'), roles };
  }

  evict() {
    this.ctx.abort('evicted');
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const chat = env.CHATS.get(env.CHATS.idFromName('one'));
    const parameter = (name) => searchParams.get(name);
    try {
      switch (pathname) {
        case '/append':
          return Response.json((await chat.append(parameter('writer'), Number(parameter('count')))) ?? null);
        case '/texts':
          return Response.json(await chat.texts(parameter('session')));
        case '/begin':
          return Response.json(await chat.begin());
        case '/resume':
          return Response.json(await chat.resume(parameter('id')));
        case '/outage':
          return Response.json(await chat.outage(parameter('at')));
        case '/hear':
          return Response.json(await chat.hear());
        default:
          return Response.json(
            await chat.evict().then(
              () => null,
              (error) => String(error),
            ),
          );
      }
    } catch (error) {
      return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
    }
  },
};
