'use client';

import { RethreadError, init } from 'rethread';
import { repairing } from 'rethread/fetch';
import { RethreadError as FormatsError, init as initFormats, validate } from 'rethread/formats';
import { useEffect, useState } from 'react';
import { chat, keep } from '../chat.js';

const messages = [
  { role: 'user', content: 'hi' },
  { role: 'tool', tool_call_id: 'call_1', content: '21' },
];

async function everything() {
  const query = new URLSearchParams(location.search);
  await Promise.all([init(), initFormats()]);
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'stand-in', messages }),
  };
  return {
    oneError: RethreadError === FormatsError,
    findings: validate({ messages }, 'openai-chat').map(({ code }) => code),
    statuses: [(await fetch(query.get('fetch'), post)).status, (await repairing()(query.get('fetch'), post)).status],
    ...(await chat(query.get('model'), 'indexeddb')),
    kept: await keep('localstorage'),
  };
}

export default function Page() {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    everything()
      .catch((error) => ({ thrown: String(error?.stack ?? error), code: error?.code }))
      .then(setAnswer);
  }, []);
  return (
    <pre id="out" data-done={answer ? 'true' : undefined}>
      {answer && JSON.stringify(answer)}
    </pre>
  );
}
