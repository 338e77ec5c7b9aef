// What a page does with `rethread/fetch`. The test calls these.

import OpenAI from 'openai';
import { repairing } from 'rethread/fetch';

globalThis.forms = {
  text: (text) => ({ body: text }),
  bytes: (text) => ({ body: new TextEncoder().encode(text) }),
  blob: (text) => ({ body: new Blob([text], { type: 'application/json' }) }),
};

/** Sends a body in each form, and in a Request; returns the statuses and the reported findings. */
globalThis.sendForms = async (url, text) => {
  const reports = [];
  const own = repairing({ onRepair: ({ dialect, report }) => reports.push([dialect, report[0].code]) });
  const answers = [];
  for (const form of Object.values(globalThis.forms))
    answers.push((await own(url, { method: 'POST', ...form(text) })).status);
  answers.push(
    (await own(new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text })))
      .status,
  );
  return { answers, reports };
};

/** A request that is no conversation. */
globalThis.sendOther = async (url) => (await repairing()(url)).status;

/** A streamed answer through OpenAI's client; its text. */
globalThis.ask = async (baseURL, body) => {
  const client = new OpenAI({
    apiKey: 'test-key',
    dangerouslyAllowBrowser: true,
    maxRetries: 0,
    baseURL,
    fetch: repairing(),
  });
  const completion = await client.chat.completions.stream(body).finalChatCompletion();
  return completion.choices[0].message.content;
};
globalThis.ready = true;
