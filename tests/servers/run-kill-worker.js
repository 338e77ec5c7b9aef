// A worker that runs a turn with tools, or goes on with one, in a Durable Object or on D1. The address says where and
// which: /run or /goOn, ?store=object|d1&session=…&plan=…&recorder=…. The recorder keeps what the run notes, and may
// hold it at any operation.

import { DurableObject } from 'cloudflare:workers';
import { open, validate } from '../../js/entry/workerd.js';
import { drive } from '../../js/host.js';
import { d1, durableObject } from '../../js/stores/cloudflare.js';
import { driveToEnd, goOn, runRequest, watchedDriver } from './run-kill-model.mjs';

async function act(driver, request) {
  const { pathname, searchParams } = new URL(request.url);
  const [id, plan, recorder] = ['session', 'plan', 'recorder'].map((name) => searchParams.get(name));
  const report = async (what, line) =>
    (await fetch(`${recorder}/${what}?session=${id}`, { method: 'POST', body: line })).text();
  const note = (line) => report('note', line);
  const counter = { isCounting: false, operations: 0 };
  const store =
    pathname === '/run' ? watchedDriver(driver, counter, (at, moment) => report('point', `${at} ${moment}`)) : driver;
  const client = await open({ store, leaseMs: 3000 });
  if (pathname === '/goOn') return goOn({ validate, drive }, client, id, note, plan);
  const session = await client.session(id);
  counter.isCounting = true;
  const { status, error } = await driveToEnd(
    drive,
    await session.run({ input: 'Go', ...runRequest(note, plan, true) }),
    note,
  );
  return { status, error, operations: counter.operations };
}

const answer = async (driver, request) => {
  try {
    return Response.json(await act(driver, request));
  } catch (error) {
    return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
  }
};

export class Chats extends DurableObject {
  fetch(request) {
    return answer(durableObject(this.ctx.storage), request);
  }
}

export default {
  fetch(request, env) {
    const { searchParams } = new URL(request.url);
    if (searchParams.get('store') === 'd1') return answer(d1(env.DB), request);
    return env.CHATS.get(env.CHATS.idFromName(searchParams.get('session'))).fetch(request);
  },
};
