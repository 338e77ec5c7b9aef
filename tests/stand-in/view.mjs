// One neutral picture of a request in either dialect, so that the brain need not know the wire.

const textOf = (content) => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.filter((p) => p.type === 'text').map((p) => p.text).join('\n');
};
const parsed = (text) => { try { return JSON.parse(text); } catch { return text; } };

/** Events in order: {user}, {call: {id, name, arguments}}, {result: {id, text}}, {round}. */
function* openaiEvents(messages) {
  for (const m of messages) {
    if (m.role === 'user' && textOf(m.content)) yield { user: textOf(m.content) };
    if (m.tool_calls) {
      yield { round: true };
      for (const c of m.tool_calls) {
        const def = c.function ?? c.custom ?? {};
        yield { call: { id: c.id, name: def.name, arguments: parsed(def.arguments ?? def.input) } };
      }
    }
    if (m.role === 'tool') yield { result: { id: m.tool_call_id, text: textOf(m.content) } };
  }
}

function* anthropicEvents(messages) {
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

const openaiTools = (tools = []) =>
  (tools ?? []).filter((t) => t.type === 'function').map((t) => ({ name: t.function.name, schema: t.function.parameters ?? {} }));
const anthropicTools = (tools = []) => tools.filter((t) => t.input_schema).map((t) => ({ name: t.name, schema: t.input_schema }));

export function viewOf(dialect, body) {
  const openai = dialect === 'openai-chat';
  const view = { userText: '', rounds: 0, results: [], tools: openai ? openaiTools(body.tools) : anthropicTools(body.tools) };
  let calls = new Map();
  for (const e of (openai ? openaiEvents : anthropicEvents)(body.messages)) {
    if (e.user) Object.assign(view, { userText: e.user, rounds: 0, results: [] });
    if (e.user) calls = new Map();
    if (e.round) view.rounds += 1;
    if (e.call) calls.set(e.call.id, e.call);
    if (e.result) view.results.push({ ...(calls.get(e.result.id) ?? { id: e.result.id }), text: e.result.text });
  }
  const choice = body.tool_choice;
  view.mayCall = view.tools.length > 0 && choice !== 'none' && choice?.type !== 'none';
  view.thinking = !openai && ['enabled', 'adaptive'].includes(body.thinking?.type);
  return view;
}
