// An agent whose conversation OpenAI keeps. Run it again after a kill: it continues where it was, and sends nothing twice.
//
//   node agents/agent.js "Weather in Oslo?"

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { postgres } from 'rethread/postgres';
import { sqlite } from 'rethread/sqlite';
import { toolsFor } from '../chat/tools.js';

const { OPENAI_API_KEY, API_URL = 'https://api.openai.com/v1', MODEL = 'gpt-4.1-mini', CHAT = 'agent' } = process.env;
const { DATABASE_URL, SQLITE_FILE = 'agent.sqlite', LEASE_MS = '30000' } = process.env;
const headers = { authorization: `Bearer ${OPENAI_API_KEY}` };
const provider = { dialect: 'openai-responses', url: `${API_URL}/responses`, params: { model: MODEL }, stream: true };
const request = { provider, instructions: 'Answer in one sentence.', tools: toolsFor(process.env) };

const pool = DATABASE_URL ? new pg.Pool({ connectionString: DATABASE_URL }) : null;
const store = await open({ store: pool ? postgres(pool) : sqlite(SQLITE_FILE), leaseMs: Number(LEASE_MS) });

async function api(path, body) {
  const sent = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${API_URL}/${path}`, { headers: { ...headers, 'content-type': 'application/json' }, ...sent });
  if (!response.ok) throw new Error(`the service answered ${response.status} to ${path}`);
  return response.json();
}

/** Opens the chat with a new conversation. The service gets what the chat has, with the next question. */
async function inNewConversation() {
  await store.session(CHAT, { owner: { kind: 'session' } });
  const { id } = await api('conversations', {});
  return store.session(CHAT, { owner: { kind: 'conversation', conversationId: id } });
}

async function itemsOf({ conversationId }) {
  const items = [];
  for (let after = ''; ;) {
    const page = await api(`conversations/${conversationId}/items?order=asc&limit=100${after}`);
    items.push(...page.data);
    if (!page.has_more) return items;
    after = `&after=${page.last_id}`;
  }
}

/** Returns true if the conversation has what the run sends next: the results of its tools, or its question more times than the stored messages. */
async function isSubmitted(session, { openCalls, input }) {
  const sent = await itemsOf(session.owner);
  if (openCalls.length > 0) {
    const isOutputOf = (id) => (item) => item.type === 'function_call_output' && item.call_id === id;
    const unanswered = sent.filter(({ type, call_id: id }, at) => type === 'function_call' && !sent.slice(at).some(isOutputOf(id)));
    // A call whose id an older call had is stored under an id of its own and not found: a new conversation sends nothing twice either.
    return !openCalls.every(({ callId }) => unanswered.some(({ call_id: id }) => id === callId));
  }
  const textOf = (content) => (typeof content === 'string' ? content : content.map(({ text }) => text).join(''));
  const isQuestion = ({ role, content, parts }) => role === 'user' && textOf(content ?? parts) === textOf(input.at(-1).parts);
  const stored = (await session.messages({ limit: 10_000 })).items;
  return sent.filter(isQuestion).length > stored.filter(isQuestion).length;
}

async function finish(run) {
  for await (const event of drive(run, { headers })) {
    if (event.type === 'text_delta') process.stdout.write(event.text);
    if (event.type === 'tool_started') console.log(`[${event.name}]`);
    if (event.type === 'finished') console.log(event.result.error ? `\nfailed: ${event.result.error.code}` : '');
  }
}

/** Continues what a killed or failed process left. Returns the session, which may have another conversation. */
async function resume(session) {
  for (const { id } of await session.pendingRuns()) {
    let run;
    // The killed process counts as the owner until its lease has ended.
    while ((run = (await session.pendingRuns()).find((pending) => pending.id === id))?.state === 'live') await sleep(100);
    if (!run) continue;
    if (await isSubmitted(session, run)) {
      // The service has it, and its answer was lost. What is stored here continues in a new conversation.
      await session.discard(id, { keep: true });
      session = await inNewConversation();
    } else {
      await finish(await session.resume(id, { ...request, retry: { approveUnsafeReplay: () => true } }));
    }
  }
  return session;
}

let session = await store.session(CHAT);
if (session.owner.kind !== 'conversation') session = await inNewConversation();
session = await resume(session);
const [, , question] = process.argv;
if (question) await finish(await session.run({ ...request, input: question }));
await store.close();
await pool?.end();
