// One neutral picture of a request in any dialect, so that the brain need not know the wire.

const textOf = (content) => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter((p) => /^(input_|output_)?text$/.test(p.type))
    .map((p) => p.text)
    .join('\n');
};
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Events in order: {user}, {call: {id, name, arguments}}, {result: {id, text}}, {round}. */
function* chatEvents({ messages }) {
  for (const m of messages) {
    if (m.role === 'user' && textOf(m.content)) yield { user: textOf(m.content) };
    if (m.tool_calls?.length) {
      yield { round: true };
      for (const c of m.tool_calls) {
        const def = c.function ?? c.custom ?? {};
        yield { call: { id: c.id, name: def.name, arguments: parsed(def.arguments ?? def.input) } };
      }
    }
    if (m.role === 'tool') yield { result: { id: m.tool_call_id, text: textOf(m.content) } };
  }
}

function* responsesEvents({ input }) {
  let calling = false;
  for (const item of typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? [])) {
    if (item.role === 'user' && textOf(item.content)) yield { user: textOf(item.content) };
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      if (!calling) yield { round: true };
      calling = true;
      yield { call: { id: item.call_id, name: item.name, arguments: parsed(item.arguments ?? item.input) } };
    }
    if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      calling = false;
      yield { result: { id: item.call_id, text: textOf(item.output) } };
    }
  }
}

function* conversationEvents({ inputs }) {
  let calling = false;
  for (const entry of typeof inputs === 'string' ? [{ role: 'user', content: inputs }] : (inputs ?? [])) {
    if (entry.role === 'user' && textOf(entry.content)) yield { user: textOf(entry.content) };
    if (entry.type === 'function.call') {
      if (!calling) yield { round: true };
      yield { call: { id: entry.tool_call_id, name: entry.name, arguments: parsed(entry.arguments) } };
    }
    calling = entry.type === 'function.call';
    if (entry.type === 'function.result') yield { result: { id: entry.tool_call_id, text: entry.result } };
  }
}

function* interactionEvents({ input }) {
  const steps = typeof input === 'string' ? [{ type: 'user_input', content: input }] : [input].flat();
  let calling = false;
  for (const { type, content, id, name, arguments: given, call_id: called, result } of steps) {
    if (type === 'user_input' && textOf(content)) yield { user: textOf(content) };
    if (type === 'function_call') {
      if (!calling) yield { round: true };
      yield { call: { id, name, arguments: given } };
    }
    calling = type === 'function_call';
    if (type === 'function_result') yield { result: { id: called, text: textOf(result) || JSON.stringify(result) } };
  }
}

function* anthropicEvents({ messages }) {
  let before = null;
  for (const m of messages) {
    const blocks = typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content;
    const calls = blocks.filter((b) => b.type === 'tool_use');
    if (calls.length && before !== 'assistant') yield { round: true };
    for (const b of blocks) {
      if (b.type === 'tool_use') yield { call: { id: b.id, name: b.name, arguments: b.input } };
      if (b.type === 'tool_result') yield { result: { id: b.tool_use_id, text: textOf(b.content) } };
      // Text behind results is a new question too: that is how a user interrupts a tool loop here.
      if (b.type === 'text' && m.role === 'user') yield { user: b.text };
    }
    before = m.role;
  }
}

function* geminiEvents({ contents }) {
  let before = null;
  for (const { role, parts } of contents) {
    if (role === 'model' && before !== 'model' && parts.some((p) => p.functionCall)) yield { round: true };
    for (const { text, functionCall: call, functionResponse: result } of parts) {
      if (call) yield { call: { id: call.id ?? call.name, name: call.name, arguments: call.args ?? {} } };
      if (result) {
        const said = result.response.result ?? result.response.output ?? result.response;
        yield {
          result: { id: result.id ?? result.name, text: typeof said === 'string' ? said : JSON.stringify(said) },
        };
      }
      if (text && role !== 'model') yield { user: text };
    }
    before = role;
  }
}

function* bedrockEvents({ messages }) {
  for (const { role, content } of messages) {
    if (content.some((b) => b.toolUse && b.toolUse.type !== 'server_tool_use')) yield { round: true };
    for (const { text, toolUse: call, toolResult: result } of content) {
      if (call) yield { call: { id: call.toolUseId, name: call.name, arguments: call.input } };
      if (result && role === 'user') {
        const said = result.content.map((b) => b.text ?? JSON.stringify(b.json ?? b)).join('\n');
        yield { result: { id: result.toolUseId, text: said } };
      }
      if (text && role === 'user') yield { user: text };
    }
  }
}

const chatTools = ({ tools }) =>
  (tools ?? []).filter((t) => t.function).map((t) => ({ name: t.function.name, schema: t.function.parameters ?? {} }));
const flatTools = ({ tools }) =>
  (tools ?? []).filter((t) => t.type === 'function').map((t) => ({ name: t.name, schema: t.parameters ?? {} }));
const anthropicTools = ({ tools }) =>
  (tools ?? []).filter((t) => t.input_schema).map((t) => ({ name: t.name, schema: t.input_schema }));
/** Google's own schemas spell their types in capitals. */
const lower = (schema) =>
  JSON.parse(JSON.stringify(schema), (key, value) =>
    key === 'type' && typeof value === 'string' ? value.toLowerCase() : value,
  );
const geminiTools = ({ tools }) =>
  (tools ?? [])
    .flatMap((t) => t.functionDeclarations ?? [])
    .map((f) => ({ name: f.name, schema: lower(f.parametersJsonSchema ?? f.parameters ?? {}) }));

const never = () => false;
const DIALECTS = {
  'openai-chat': { events: chatEvents, tools: chatTools, thinks: never },
  'openai-responses': { events: responsesEvents, tools: flatTools, thinks: (body) => Boolean(body.reasoning) },
  anthropic: {
    events: anthropicEvents,
    tools: anthropicTools,
    thinks: (body) => ['enabled', 'adaptive'].includes(body.thinking?.type),
  },
  gemini: {
    events: geminiEvents,
    tools: geminiTools,
    thinks: (body) => body.generationConfig?.thinkingConfig?.includeThoughts === true,
  },
  bedrock: {
    events: bedrockEvents,
    tools: ({ toolConfig }) =>
      (toolConfig?.tools ?? [])
        .filter((t) => t.toolSpec)
        .map(({ toolSpec: { name, inputSchema } }) => ({ name, schema: inputSchema.json })),
    thinks: (body) => ['enabled', 'adaptive'].includes(body.additionalModelRequestFields?.thinking?.type),
  },
  'gemini-interactions': {
    events: interactionEvents,
    tools: flatTools,
    thinks: (body) => body.generation_config?.thinking_summaries === 'auto',
  },
  'mistral-conversations': { events: conversationEvents, tools: chatTools, thinks: never },
  mistral: { events: chatEvents, tools: chatTools, thinks: (body) => body.prompt_mode === 'reasoning' },
};

export function viewOf(dialect, body) {
  const { events, tools, thinks } = DIALECTS[dialect];
  const view = { userText: '', rounds: 0, results: [], tools: tools(body), thinking: thinks(body) };
  let calls = new Map();
  for (const e of events(body)) {
    if (e.user) Object.assign(view, { userText: e.user, rounds: 0, results: [] });
    if (e.user) calls = new Map();
    if (e.round) view.rounds += 1;
    if (e.call) calls.set(e.call.id, e.call);
    if (e.result) view.results.push({ ...(calls.get(e.result.id) ?? { id: e.result.id }), text: e.result.text });
  }
  const choice = body.tool_choice ?? body.completion_args?.tool_choice ?? body.toolConfig?.functionCallingConfig?.mode;
  view.mayCall = view.tools.length > 0 && !['none', 'NONE'].includes(choice?.type ?? choice);
  return view;
}
