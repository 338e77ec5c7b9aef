// The stored messages of a chat, for a page that begins.

import { readMessages } from '../message-record.js';
import { arrivingMessage } from './arriving.js';
import { replayed } from './changes.js';
import { readablePart } from './parts.js';
import { messageOf, readEntries } from './read.js';
import { withClosedCalls } from './transport.js';

/** @type {typeof import('../ai-sdk.d.ts').loadUIMessages} */
export async function loadUIMessages(session, { ai } = {}) {
  const { messages: stored } = await readMessages(session);
  const entries = readEntries(stored);
  const messages = entries.map(messageOf);
  const arriving = arrivingMessage(session, entries, stored);
  if (arriving && messages.at(-1)?.id === arriving.id) messages.push(replayed(messages.pop(), arriving));
  else if (arriving) messages.push(arriving);
  return withClosedCalls(messages).map((message) => ({
    ...message,
    parts: message.parts.map((part) => readablePart(part, ai)),
  }));
}
