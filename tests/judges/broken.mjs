// Conversations with tools, and what crashes, edits and trims make of them. The same seed makes the same ones.

/** A small generator of numbers below a bound. */
export function seeded(seed) {
  let state = BigInt(seed);
  return (bound) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(bound));
  };
}

/** A whole conversation, neutral: turns of words, rounds of calls with their results. */
function conversation(below) {
  const items = [];
  let id = 0;
  for (let turn = 0; turn <= below(3); turn += 1) {
    items.push({ user: `question ${turn}` });
    for (let round = 0; round < below(3); round += 1) {
      const calls = Array.from({ length: 1 + below(3) }, () => ({
        id: `call_${(id += 1)}`,
        name: ['look', 'find', 'look'][below(3)],
        input: { n: below(9) },
      }));
      items.push({ words: below(2) ? `round ${round}` : '', calls });
      items.push({ results: calls.map((call) => ({ id: call.id, name: call.name, text: `result of ${call.id}` })) });
    }
    if (below(4)) items.push({ words: `answer ${turn}`, calls: [] });
  }
  return items;
}

const WRITE = {
  'openai-chat': (items) => ({
    model: 'm',
    messages: items.flatMap((item) => {
      if (item.user) return [{ role: 'user', content: item.user }];
      if (item.results) return item.results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }));
      const calls = item.calls.map(({ id, name, input }) => ({
        id,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      }));
      return [{ role: 'assistant', content: item.words || null, ...(calls.length && { tool_calls: calls }) }];
    }),
  }),
  anthropic: (items) => ({
    model: 'm',
    max_tokens: 9,
    messages: items.map((item) => {
      if (item.user) return { role: 'user', content: item.user };
      if (item.results)
        return {
          role: 'user',
          content: item.results.map(({ id, text }) => ({ type: 'tool_result', tool_use_id: id, content: text })),
        };
      const words = item.words ? [{ type: 'text', text: item.words }] : [];
      return {
        role: 'assistant',
        content: [...words, ...item.calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input }))],
      };
    }),
  }),
  gemini: (items) => ({
    contents: items.map((item) => {
      if (item.user) return { role: 'user', parts: [{ text: item.user }] };
      if (item.results)
        return {
          role: 'user',
          parts: item.results.map(({ name, text }) => ({ functionResponse: { name, response: { result: text } } })),
        };
      const words = item.words ? [{ text: item.words }] : [];
      return {
        role: 'model',
        parts: [...words, ...item.calls.map(({ name, input }) => ({ functionCall: { name, args: input } }))],
      };
    }),
  }),
  bedrock: (items) => ({
    messages: items.map((item) => {
      if (item.user) return { role: 'user', content: [{ text: item.user }] };
      if (item.results)
        return {
          role: 'user',
          content: item.results.map(({ id, text }) => ({ toolResult: { toolUseId: id, content: [{ text }] } })),
        };
      const words = item.words ? [{ text: item.words }] : [];
      return {
        role: 'assistant',
        content: [...words, ...item.calls.map(({ id, name, input }) => ({ toolUse: { toolUseId: id, name, input } }))],
      };
    }),
    toolConfig: {
      tools: ['look', 'find'].map((name) => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } })),
    },
  }),
};
WRITE.mistral = WRITE['openai-chat'];
WRITE['openai-responses'] = (items) => ({
  model: 'm',
  input: items.flatMap((item) => {
    if (item.user) return [{ role: 'user', content: item.user }];
    if (item.results)
      return item.results.map(({ id, text }) => ({ type: 'function_call_output', call_id: id, output: text }));
    const words = item.words
      ? [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: item.words }] }]
      : [];
    return [
      ...words,
      ...item.calls.map(({ id, name, input }) => ({
        type: 'function_call',
        call_id: id,
        name,
        arguments: JSON.stringify(input),
      })),
    ];
  }),
});
WRITE['mistral-conversations'] = (items) => ({
  model: 'm',
  inputs: items.flatMap((item) => {
    if (item.user) return [{ type: 'message.input', role: 'user', content: item.user }];
    if (item.results)
      return item.results.map(({ id, text }) => ({ type: 'function.result', tool_call_id: id, result: text }));
    const words = item.words ? [{ type: 'message.output', role: 'assistant', content: item.words }] : [];
    return [
      ...words,
      ...item.calls.map(({ id, name, input }) => ({
        type: 'function.call',
        tool_call_id: id,
        name,
        arguments: JSON.stringify(input),
      })),
    ];
  }),
});

WRITE['gemini-interactions'] = (items) => ({
  model: 'm',
  input: items.flatMap((item) => {
    const said = (text) => [{ type: 'text', text }];
    if (item.user) return [{ type: 'user_input', content: said(item.user) }];
    if (item.results)
      return item.results.map(({ id, name, text }) => ({ type: 'function_result', call_id: id, name, result: text }));
    const thought = item.calls.length ? [{ type: 'thought', signature: `c2ln${item.calls[0].id}` }] : [];
    const words = item.words ? [{ type: 'model_output', content: said(item.words) }] : [];
    const calls = item.calls.map(({ id, name, input }) => ({ type: 'function_call', id, name, arguments: input }));
    return [...thought, ...words, ...calls];
  }),
});

const LIST = {
  gemini: 'contents',
  'openai-responses': 'input',
  'gemini-interactions': 'input',
  'mistral-conversations': 'inputs',
};

/** Every object and array below a value. */
function below_(value, found = []) {
  if (value && typeof value === 'object') {
    found.push(value);
    Object.values(value).forEach((inner) => below_(inner, found));
  }
  return found;
}

/** What happens to lists of messages, to lists of parts and to single members. */
function spoil(list, below) {
  const at = below(list.length || 1);
  const others = ['', null, [], {}, 7, 'text'];
  const holders = below_(list);
  const holder = holders[below(holders.length)];
  const keys = Object.keys(holder);
  const key = keys[below(keys.length || 1)];
  switch (below(11)) {
    case 0:
      list.splice(at, 1);
      break;
    case 1:
      list.splice(at, 0, structuredClone(list[below(list.length || 1)] ?? {}));
      break;
    case 2:
      [list[at], list[0]] = [list[0], list[at]];
      break;
    case 3:
      list.push(...list.splice(at, 1));
      break;
    case 4:
      list.length = at;
      break;
    case 5:
      list.splice(0, at);
      break;
    case 6:
      if (Array.isArray(holder)) holder.splice(below(holder.length || 1), 1);
      else delete holder[key];
      break;
    case 7:
      if (key !== undefined) holder[key] = others[below(others.length)];
      break;
    case 8:
      if (Array.isArray(holder)) holder.reverse();
      break;
    case 9:
      if (Array.isArray(holder) && holder.length) holder.push(structuredClone(holder[0]));
      break;
    default:
      list.splice(at, 0, ...(list.length ? [structuredClone({ ...list[0], role: 'user' })] : []));
  }
}

/** A body with up to four things wrong in it. */
export function brokenBody(dialect, seed) {
  const below = seeded(seed);
  const body = WRITE[dialect](conversation(below));
  const list = body[LIST[dialect] ?? 'messages'];
  for (let times = below(5); times > 0; times -= 1) spoil(list, below);
  return body;
}
