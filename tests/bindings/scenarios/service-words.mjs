// What a service and a session have of one conversation, as words that can be compared. The same file runs in a page
// and in Node.

export const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('');
export const sorted = (list) => list.toSorted((a, b) => (a < b ? -1 : Number(a > b)));

/**
 * Items of the service in words, without the outputs; and the outputs. Each call has arguments of its own, since ids
 * come again. `summaries`: the words and outputs that a summary stands for, by its text; they stand in its place.
 */
export function wordsOfService(items, summaries = new Map()) {
  const words = [];
  const outputs = [];
  const callNames = new Map();
  for (const item of items) {
    const summary = summaries.get(item.encrypted_content ?? textOf(item.content).split('\n').at(-1));
    if (summary) {
      words.push(...summary.words);
      outputs.push(...summary.outputs);
    } else if (item.type === 'function_call_output')
      outputs.push(`${callNames.get(item.call_id) ?? item.call_id}: ${textOf(item.output)}`);
    else if (item.type === 'function_call') {
      callNames.set(item.call_id, `call ${item.arguments}`);
      words.push(`call ${item.arguments}`);
    } else if (item.type === 'reasoning') words.push('reasoning');
    else words.push(`${item.role}: ${textOf(item.content)}`);
  }
  return { words, outputs };
}

/** What a session shows, in the same words. A call without a result has the output null: the service has one that says
 *  so. */
export async function wordsOfSession(session) {
  const messages = (await session.messages({ limit: 1000 })).items;
  const calls = (await session.invocations({ session: session.id, payload: true, limit: 1000 })).items;
  const byId = new Map(calls.map((call) => [call.id, call]));
  const words = [];
  const outputs = [];
  for (const { role, parts } of messages) {
    for (const part of parts) {
      if (part.type === 'text') words.push(`${role}: ${part.text}`);
      if (part.type === 'reasoning') words.push('reasoning');
      if (part.type !== 'tool_call') continue;
      const { argumentsText, result } = byId.get(part.invocation);
      words.push(`call ${argumentsText}`);
      outputs.push({ call: `call ${argumentsText}`, text: result ? String(result.content) : null });
    }
  }
  return { words, outputs };
}
