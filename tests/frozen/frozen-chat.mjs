// The chat that the frozen databases hold, and what a build must find in it. The functions run in Node and, as text, in
// a page.

/** Every kind of record: messages, a call with its result, an image, a replaced audit row, state, and a run that was
 *  cut off. */
export async function writeFrozenChat(open, store) {
  const at = 1_700_000_000_000;
  let ids = 0;
  const client = await open({ ...store, now: () => at, newId: () => `id-${(ids += 1)}` });
  const session = await client.session('chat', { channel: 'web', title: 'Cats', metadata: { owner: 'u1' } });
  session.state.set('mood', { level: 3 });
  await session.append([
    {
      role: 'user',
      parts: [
        { type: 'text', text: 'What is on it? 🐈' },
        { type: 'image', data: new Uint8Array([137, 80, 78, 71]), mediaType: 'image/png' },
      ],
    },
    {
      role: 'assistant',
      parts: [
        { type: 'tool', callId: 'c1', name: 'look', arguments: { at: 1 }, result: { found: 'cat' } },
        { type: 'text', text: 'A cat.' },
      ],
    },
    { role: 'user', parts: [{ type: 'text', text: 'And there?' }] },
    { role: 'assistant', parts: [{ type: 'tool', callId: 'c2', name: 'look', arguments: { at: 2 } }] },
  ]);
  await session.answer('c2', { type: 'tool_result', content: 'a dog', isError: true });
  const deleted = await client.session('deleted');
  await deleted.append([{ role: 'user', parts: [{ type: 'text', text: 'x' }] }]);
  await client.deleteSession('deleted');
  const cut = await client.session('cut off', { channel: 'mail' });
  const run = await cut.run({
    input: 'Hello?',
    provider: { dialect: 'openai-chat', url: 'http://127.0.0.1:1/v1/chat/completions', params: { model: 'm' } },
  });
  run[Symbol.dispose]();
  await client.close();
}

/** What is in it, as plain values. Then it writes, to show that the database is not only readable. */
export async function readFrozenChat(open, store) {
  const client = await open(store);
  const session = await client.session('chat');
  const { items } = await session.messages();
  const { items: rows } = await client.invocations({ payload: true });
  const { items: sessions } = await client.sessions();
  const pending = await client.pendingRuns();
  const found = {
    state: (await client.status()).state,
    sessions: sessions.map(({ id, channel, title, metadata, messageCount, createdAt }) => ({
      id,
      channel,
      title,
      metadata,
      messageCount,
      createdAt,
    })),
    messages: items.map(({ id, role, createdAt, parts }) => ({
      id,
      role,
      createdAt,
      parts: parts.map(({ type, text }) => (text === undefined ? type : text)),
    })),
    rows: rows
      .toSorted((one, other) => (one.callId < other.callId ? -1 : 1))
      .map((row) => ({
        callId: row.callId,
        name: row.name,
        status: row.status,
        arguments: row.arguments,
        result: row.result,
      })),
    mood: session.state.get('mood'),
    pending: pending.map(({ session: of, state, input }) => ({
      session: of,
      state,
      input: input.map(({ parts }) => parts[0].text),
    })),
  };
  await session.append([{ role: 'user', parts: [{ type: 'text', text: 'new' }] }]);
  await client.deleteSession('cut off');
  await client.close();
  const again = await open(store);
  const messages = (await (await again.session('chat')).messages()).items;
  found.written = [messages.length, messages.at(-1).parts[0].text, (await again.sessions()).items.length];
  await again.close();
  return found;
}
