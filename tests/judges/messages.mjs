// A request body as the messages of the `ai` package: part by part and in its order, nothing moved, nothing mended.

const list = (value) => (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]);
const json = (text) => {
  if (typeof text !== 'string') return text ?? {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
const media = (url, mediaType = 'application/octet-stream') => ({ type: 'file', mediaType, data: url });
const output = (value, failed = false) => {
  if (typeof value === 'string') return { type: failed ? 'error-text' : 'text', value };
  return { type: failed ? 'error-json' : 'json', value: value ?? null };
};

/** OpenAI's chat completions, and Mistral's. */
function chat(body) {
  const names = new Map();
  const part = (block) => {
    if (typeof block?.text === 'string') return { type: 'text', text: block.text };
    if (block?.type === 'image_url') return media(block.image_url?.url ?? block.image_url, 'image/*');
    return media('AA==');
  };
  return body.messages.map((message) => {
    const words = typeof message.content === 'string' ? message.content : list(message.content).map(part);
    switch (message.role) {
      case 'system':
      case 'developer':
        return { role: 'system', content: typeof words === 'string' ? words : words.map(({ text }) => text).join('') };
      case 'assistant': {
        const content = typeof words === 'string' ? [{ type: 'text', text: words }] : words;
        if (typeof message.refusal === 'string') content.push({ type: 'text', text: message.refusal });
        for (const call of list(message.tool_calls)) {
          const inner = call.function ?? call.custom;
          names.set(call.id, inner.name);
          content.push({
            type: 'tool-call',
            toolCallId: call.id,
            toolName: inner.name,
            input: json(inner.arguments ?? inner.input),
          });
        }
        return { role: 'assistant', content };
      }
      case 'tool':
        return {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: message.tool_call_id,
              toolName: names.get(message.tool_call_id),
              output: output(message.content),
            },
          ],
        };
      default:
        return { role: 'user', content: words };
    }
  });
}

function anthropic(body) {
  const names = new Map();
  const out = [];
  if (body.system)
    out.push({
      role: 'system',
      content: list(body.system)
        .map((block) => block.text ?? block)
        .join(''),
    });
  for (const message of body.messages) {
    const blocks =
      typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : list(message.content);
    if (message.role === 'system') {
      out.push({ role: 'system', content: blocks.map(({ text }) => text).join('') });
      continue;
    }
    let current;
    const put = (role, part) => {
      if (current?.role !== role) out.push((current = { role, content: [] }));
      current.content.push(part);
    };
    for (const block of blocks) {
      if (block.type === 'tool_result') {
        put('tool', {
          type: 'tool-result',
          toolCallId: block.tool_use_id,
          toolName: names.get(block.tool_use_id),
          output: output(block.content ?? '', block.is_error),
        });
      } else if (block.type === 'tool_use' || block.type === 'server_tool_use' || block.type === 'mcp_tool_use') {
        names.set(block.id, block.name);
        put('assistant', {
          type: 'tool-call',
          toolCallId: block.id,
          toolName: block.name,
          input: block.input,
          ...(block.type !== 'tool_use' && { providerExecuted: true }),
        });
      } else if (/_tool_result$/.test(block.type)) {
        put('assistant', {
          type: 'tool-result',
          toolCallId: block.tool_use_id,
          toolName: names.get(block.tool_use_id) ?? 'server',
          output: output(block.content),
        });
      } else if (block.type === 'thinking' || block.type === 'redacted_thinking') {
        put('assistant', { type: 'reasoning', text: block.thinking ?? '' });
      } else if (typeof block.text === 'string') {
        put(message.role, { type: 'text', text: block.text });
      } else {
        put(message.role, media('AA=='));
      }
    }
  }
  return out;
}

function gemini(body) {
  const out = [];
  const system = list(body.systemInstruction?.parts)
    .map(({ text }) => text)
    .join('');
  if (system) out.push({ role: 'system', content: system });
  /** Calls without an id are answered in their order, by name. */
  const open = [];
  let count = 0;
  for (const { role, parts } of body.contents) {
    let current;
    const put = (as, part) => {
      if (current?.role !== as) out.push((current = { role: as, content: [] }));
      current.content.push(part);
    };
    const speaker = role === 'model' ? 'assistant' : 'user';
    for (const part of list(parts)) {
      if (part.functionCall) {
        const { id, name, args } = part.functionCall;
        count += 1;
        open.push({ id, name, own: id ?? `call ${count}` });
        put('assistant', { type: 'tool-call', toolCallId: open.at(-1).own, toolName: name, input: args ?? {} });
      } else if (part.functionResponse) {
        const { id, name, response } = part.functionResponse;
        const at = open.findIndex((call) => (id && call.id ? call.id === id : call.name === name));
        const [call] = at < 0 ? [] : open.splice(at, 1);
        put('tool', {
          type: 'tool-result',
          toolCallId: call?.own ?? id ?? 'nobody',
          toolName: name,
          output: output(response),
        });
      } else if (part.thought) {
        put('assistant', { type: 'reasoning', text: part.text ?? '' });
      } else if (typeof part.text === 'string') {
        put(speaker, { type: 'text', text: part.text });
      } else {
        put(speaker, media('AA=='));
      }
    }
  }
  return out;
}

/** OpenAI's Responses: each item is a message or a part of the model's turn; calls and outputs pair by `call_id`. */
function responses(body) {
  const out = [];
  if (body.instructions) out.push({ role: 'system', content: body.instructions });
  const names = new Map();
  let current;
  const put = (role, part) => {
    if (current?.role !== role) out.push((current = { role, content: [] }));
    current.content.push(part);
  };
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input;
  for (const item of input) {
    const type = item.type ?? 'message';
    if (type === 'function_call' || type === 'custom_tool_call') {
      names.set(item.call_id, item.name);
      put('assistant', {
        type: 'tool-call',
        toolCallId: item.call_id,
        toolName: item.name,
        input: json(item.arguments ?? item.input),
      });
    } else if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      put('tool', {
        type: 'tool-result',
        toolCallId: item.call_id,
        toolName: names.get(item.call_id) ?? 'unknown',
        output: output(item.output),
      });
    } else if (type !== 'message') {
      put('assistant', { type: 'reasoning', text: '' }); // reasoning, and what the server did by itself
    } else if (item.role === 'system' || item.role === 'developer') {
      current = undefined;
      out.push({
        role: 'system',
        content: list(item.content)
          .map((part) => part.text ?? part)
          .join(''),
      });
    } else {
      const parts =
        typeof item.content === 'string'
          ? [{ type: 'text', text: item.content }]
          : list(item.content).map((part) =>
              typeof part?.text === 'string' ? { type: 'text', text: part.text } : media('AA=='),
            );
      for (const part of parts) put(item.role === 'assistant' ? 'assistant' : 'user', part);
    }
  }
  return out;
}

/** By dialect: a body's messages for `generateText`. */
export const messagesOf = { 'openai-chat': chat, 'openai-responses': responses, anthropic, gemini, mistral: chat };
