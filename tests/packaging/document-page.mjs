// Runs the JavaScript of a page as it stands, with the names that a reader's program has.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '../../js/entry/node.js';
import { drive, isDriven } from '../../js/host.js';
import { laneOf } from '../browser/page.mjs';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';

const AsyncFunction = (async () => {}).constructor;
const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs the block of a page that contains `text`; returns the values of the names in `results`. */
export function runBlock(page, text, values, results = []) {
  const all = blocksOf(readFileSync(path.join(root, `docs/${page}.md`), 'utf8'));
  const found = all.filter(({ source }) => source.includes(text));
  assert.equal(found.length, 1, `docs/${page}.md: ${found.length} blocks contain ${text}`);
  const names = { open, drive, isDriven, headers: { authorization: 'Bearer sk-documents' }, options: {}, ...values };
  return new AsyncFunction(...Object.keys(names), `{ ${scoped(found[0]).source}\nreturn { ${results.join(', ')} }; }`)(
    ...Object.values(names),
  );
}

export const decode = (body) => JSON.parse(new TextDecoder().decode(body));

export const textsOf = async (session) =>
  (await session.messages({ limit: 100 })).items.map(
    ({ role, parts }) => `${role}: ${parts.map(({ type, text }) => text ?? type).join(' ')}`,
  );

/** The bodies that a lane of the stand-in has got. */
export const bodies = async (lane) => (await lane.requests()).map(({ bodyText }) => JSON.parse(bodyText));

/** {rethread, session, lane, provider}: a store in memory, and a lane of the stand-in with these answers. */
export async function chat(standIn, name, steps, { dialect = 'openai-chat', ...options } = {}) {
  const lane = laneOf(standIn.url, `documents-${name}`);
  await lane.script(steps);
  const rethread = await open();
  const session = await rethread.session('chat-1', options);
  const url = dialect === 'openai-chat' ? lane.chat : `${lane.base}/v1/responses`;
  return { rethread, session, lane, provider: { dialect, url, params: { model: 'm' } } };
}
