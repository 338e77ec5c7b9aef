// Which dialect a conversation is in, where its shape says so.

/** Every dialect, with the key of a body that holds its conversation. */
export const DIALECTS = {
  'openai-chat': 'messages', 'openai-responses': 'input', anthropic: 'messages', gemini: 'contents', mistral: 'messages',
};
/** What of a conversation a body may say beside that list. */
export const ASIDE = ['system', 'instructions', 'systemInstruction', 'system_instruction'];
export const LISTS = [...new Set(Object.values(DIALECTS))];

const array = (value) => (Array.isArray(value) ? value : []);
const has = (value, key) => typeof value === 'object' && value !== null && Object.hasOwn(value, key);
const MISTRAL = /^(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral)/i;
const ANTHROPIC_BLOCKS = /^(tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|container_upload|search_result|mcp_tool_(use|result)|\w+_tool_result)$/;
const GEMINI_DATA = ['text', 'functionCall', 'functionResponse', 'function_call', 'function_response', 'inlineData', 'inline_data', 'fileData', 'file_data', 'executableCode', 'codeExecutionResult'];
const CHAT_PARTS = /^(image_url|input_audio|refusal)$/;

/** What of one message belongs to one dialect alone, as [dialect, sentence]; "chat" is openai-chat or mistral. */
function signOf(message) {
  // Parts that say their type are those of an SDK's messages.
  const part = [message?.parts].flat().find((one) => has(one, 'type') === false && GEMINI_DATA.some((key) => has(one, key)));
  if (part) return ['gemini', `a part has \`${GEMINI_DATA.find((key) => has(part, key))}\` and no type`];
  if (/^(function_call|function_call_output|custom_tool_call|custom_tool_call_output|reasoning|item_reference)$/.test(message?.type)) {
    return ['openai-responses', `an item is of type \`${message.type}\``];
  }
  if (message?.prefix === true) return ['mistral', 'a message has `prefix`'];
  if (array(message?.tool_calls).length) return ['chat', 'a message has `tool_calls`'];
  if (message?.role === 'tool' && has(message, 'tool_call_id')) return ['chat', 'a message has the role `tool`'];
  if (message?.role === 'developer') return ['chat', 'a message has the role `developer`'];
  // Bedrock's blocks say what they are by their key: looks like Anthropic's from afar, and is none of ours.
  if (array(message?.content).some((block) => typeof block === 'object' && !has(block, 'type'))) return ['other', ''];
  for (const { type, source, thinking } of array(message?.content).filter((block) => typeof block === 'object' && block !== null)) {
    if (type === 'thinking' && Array.isArray(thinking)) return ['mistral', 'a message has `thinking` with parts'];
    if (ANTHROPIC_BLOCKS.test(type) || (type === 'image' && source)) return ['anthropic', `a message has a \`${type}\` block`];
    if (/^(input_text|output_text|input_image|input_file)$/.test(type)) return ['openai-responses', `a message has an \`${type}\` part`];
    if (CHAT_PARTS.test(type)) return ['chat', `a message has an \`${type}\` part`];
  }
  return null;
}

function signs(body, items) {
  const found = items.map(signOf).filter(Boolean);
  if (!body) return found;
  if (has(body, 'contents')) found.push(['gemini', 'it has `contents`']);
  if (has(body, 'input') && !has(body, 'messages')) found.push(['openai-responses', 'it has `input`']);
  if (!has(body, 'messages')) return found;
  if (has(body, 'system')) found.push(['anthropic', 'it has `system` beside the messages']);
  if (array(body.tools).some((tool) => has(tool, 'input_schema'))) found.push(['anthropic', 'its tools have an `input_schema`']);
  if (array(body.tools).some((tool) => has(tool, 'function'))) found.push(['chat', 'its tools have a `function`']);
  if (MISTRAL.test(body.model)) found.push(['mistral', `its model is ${body.model}`]);
  return found;
}

/** {dialect, why}, or null when the shape leaves it open or contradicts itself. */
export function guessDialect({ value, items }) {
  const body = items || typeof value !== 'object' ? null : value;
  const list = items ?? array(body?.messages ?? body?.contents ?? body?.input);
  let found = signs(body, list);
  // Mistral's is the chat format with keys and models of its own.
  if (found.some(([dialect]) => dialect === 'mistral')) found = found.filter(([dialect]) => dialect !== 'chat');
  const dialects = new Set(found.map(([dialect]) => dialect));
  if (dialects.size !== 1 || dialects.has('other')) return null;
  const [dialect, why] = found[0];
  if (dialect !== 'chat') return { dialect, why };
  const ids = list.flatMap((message) => array(message?.tool_calls).map((call) => call?.id));
  // Two services in one shape: ids of nine letters and digits are Mistral's.
  if (ids.length && ids.every((id) => /^[A-Za-z0-9]{9}$/.test(id))) return { dialect: 'mistral', why: `${why}, with ids of nine characters` };
  return { dialect: 'openai-chat', why };
}
