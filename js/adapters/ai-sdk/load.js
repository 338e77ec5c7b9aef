// The stored messages of a chat, for a page that begins.

import { readMessages } from '../session-messages.js';
import { followBranch } from './answer-hold.js';
import { replayed } from './changes.js';
import { arriving } from './marks.js';
import { readablePart } from './parts.js';
import { messageOf, readEntries } from './read.js';
import { checkSession } from './session-argument.js';
import { withClosedCalls } from './transport.js';

/** @type {typeof import('../ai-sdk.d.ts').loadUIMessages} */
export async function loadUIMessages(session, { ai } = {}) {
  checkSession(session, 'loadUIMessages');
  await followBranch(session);
  const { messages: stored } = await readMessages(session);
  const entries = readEntries(stored);
  const messages = entries.map(messageOf);
  const answer = arriving.message(session, entries, stored);
  if (answer && messages.at(-1)?.id === answer.id) messages.push(replayed(messages.pop(), answer));
  else if (answer) messages.push(answer);
  return withClosedCalls(messages).map((message) => ({
    ...message,
    parts: message.parts.map((part) => readablePart(part, ai)),
  }));
}
