// A run whose store fails while a tool's result, an answer or the turn is stored. Also runs in workerd and in a page.

const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
const answer = (message) =>
  new Response(
    JSON.stringify({
      id: 'r',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    }),
    { headers: { 'content-type': 'application/json' } },
  );
const CALL = {
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
};

/** Drives a run through an outage that `begin` begins: at the "result" of its tool, at the "answer" with the call, or
 *  at the last one ("turn"). */
export async function outageOf({ open, drive }, { at, begin, end, lastsMs, ...options }) {
  const client = await open();
  const session = await client.session('s');
  let ran = 0;
  const fail = async (when) => {
    if (when !== at) return;
    await begin();
    if (lastsMs > 0) setTimeout(end, lastsMs);
  };
  const execute = async () => {
    ran += 1;
    await fail('result');
    return 5;
  };
  const fetch = async (_, { body }) => {
    const { messages } = JSON.parse(new TextDecoder().decode(body));
    const isLast = messages.some(({ role }) => role === 'tool');
    await fail(isLast ? 'turn' : 'answer');
    return answer(isLast ? { content: 'Done.' } : CALL);
  };
  const request = { provider, tools: { f: { parameters: { type: 'object', properties: {} }, execute } } };
  const run = await session.run({ input: 'Go', ...request });
  const driven = drive(run, { fetch, ...options });
  const events = [];
  for await (const event of driven) events.push(event);
  return {
    result: await driven.result,
    events,
    ran,
    session,
    client,
    run,
    request: { request, fetch, ran: () => ran },
  };
}
