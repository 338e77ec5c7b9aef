// The service worker of an extension: what it does is asked for by the test.

import { validate } from 'rethread';
import { chat, keep, mapDriver } from './chat.js';

globalThis.everything = async (model) => {
  const answer = await chat(model, 'indexeddb');
  const messages = [{ role: 'tool', tool_call_id: 'x', content: '' }];
  const findings = validate({ messages }, 'openai-chat').map(({ code }) => code);
  const hasDom = typeof document !== 'undefined' || typeof XMLHttpRequest !== 'undefined';
  return { ...answer, findings, hasDom, kept: await keep(mapDriver()) };
};
