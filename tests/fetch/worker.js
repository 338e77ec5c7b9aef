// A worker that sends a broken conversation in each form; responds with the statuses and the reported findings.

import { repairing } from '../../js/entry/fetch-workerd.js';

const FORMS = [
  (text) => ({ body: text }),
  (text) => ({ body: new TextEncoder().encode(text) }),
  (text) => ({ body: new Blob([text], { type: 'application/json' }) }),
  (text) => ({ body: new Response(text).body }),
];

export default {
  async fetch(request) {
    const { url, text } = await request.json();
    const reports = [];
    const own = repairing({ onRepair: ({ dialect, report }) => reports.push([dialect, report[0].code]) });
    const answers = [];
    for (const form of FORMS) answers.push((await own(url, { method: 'POST', ...form(text) })).status);
    const asked = new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text });
    answers.push((await own(asked)).status);
    const valid = await own(
      new Request(url, {
        method: 'POST',
        body: new Response('{"model":"m", "messages":[{"role":"user","content":"q"}]}').body,
      }),
    );
    return Response.json({ answers: [...answers, valid.status], reports });
  },
};
