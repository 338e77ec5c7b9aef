// A session whose conversation Anthropic's service keeps in a message thread, over the stand-in; and what the service
// was sent and has, in words.

import assert from 'node:assert/strict';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';

export const BETA = 'message-threads-2026-08-12';
export const THREAD = { kind: 'response', auto: true };
export const look = { look: { execute: ({ n }) => `found ${n}` } };
let calls = 0;
/** A step that calls a tool with arguments of its own. */
export const calling = (name = 'look') => ({ calls: [{ name, arguments: { n: (calls += 1) } }] });

/** Messages of the service in words. */
export const wordsOf = (messages) =>
  messages.flatMap(({ role, content }) =>
    (typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])).map((block) => {
      if (block.type === 'text') return `${role}: ${block.text}`;
      if (block.type === 'tool_use') return `call ${JSON.stringify(block.input)}`;
      if (block.type !== 'tool_result') return block.type;
      const { content: given } = block;
      return `result ${typeof given === 'string' ? given : (given ?? []).map(({ text }) => text).join('')}`;
    }),
  );

/** The messages of a session in words, without results. */
export async function wordsOfSession(session, branch) {
  const { items } = await session.messages({ branch, limit: 5000 });
  const byId = new Map(
    (await session.invocations({ session: session.id, payload: true, limit: 5000 })).items.map((call) => [
      call.id,
      call,
    ]),
  );
  return items.flatMap(({ role, parts }) =>
    parts.flatMap((part) => {
      if (part.type === 'text') return [`${role}: ${part.text}`];
      return part.type === 'tool_call' ? [`call ${byId.get(part.invocation).argumentsText}`] : [];
    }),
  );
}
export const withoutResults = (words) => words.filter((word) => !/^(result |thinking)/.test(word));

/** A service of its own, and what asks it. */
export function serviceOf(origin, name) {
  const lane = laneOf(origin, name);
  const provider = { dialect: 'anthropic', url: lane.messages, params: { model: 'm' } };
  const threads = async () => (await fetch(`${lane.base}/control/threads`)).json();
  const pass = (minutes) =>
    fetch(`${lane.base}/control/service`, { method: 'POST', body: JSON.stringify({ minutes }) });
  /** Asks, with the steps of the stand-in. `options`: those of `drive`. */
  const ask = async (session, request, steps, options) => {
    await lane.script(steps);
    const run = await session.run({ provider, tools: look, ...request });
    return drive(run, options).result;
  };
  /** As `ask`, of a run that finishes. Returns the codes of the findings that are no notes. */
  const finish = async (session, request, ...steps) => {
    const { status, error, report } = await ask(session, request, steps);
    assert.equal(status, 'finished', JSON.stringify(error));
    return report.filter(({ severity }) => severity !== 'info').map(({ code }) => code);
  };
  /** What each request says of threads, and the code of its refusal. */
  const chain = async () => {
    const requests = await lane.requests();
    return requests.map(({ body, status, error }) => {
      const { type = 'none' } = body.thread ?? {};
      return status === 200 ? type : `${type} ${error?.error.details?.error_code ?? error?.error.type ?? 'lost'}`;
    });
  };
  /** The messages of each accepted request in words. */
  const sent = async () =>
    (await lane.requests()).filter(({ status }) => status === 200).map(({ body }) => wordsOf(body.messages));
  /** Each request has the beta header if it names a thread; one that continues has no instructions and tools, and
   *  nothing that the service has acknowledged. Texts and results must be unique. */
  const check = async () => {
    const { threads: kept } = await threads();
    for (const { body, headers, status } of await lane.requests()) {
      assert.equal((headers['anthropic-beta'] ?? '').includes(BETA), body.thread !== undefined);
      if (body.thread?.type !== 'continue' || status !== 200) continue;
      assert.ok(body.system === undefined && body.tools === undefined, 'the service has instructions and tools');
      const before = new Set(wordsOf(kept[body.thread.previous_message_id] ?? []));
      assert.deepEqual(
        wordsOf(body.messages).filter((word) => before.has(word)),
        [],
        'sent although acknowledged',
      );
    }
  };
  return { lane, provider, threads, pass, ask, finish, chain, sent, check };
}
