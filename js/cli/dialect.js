// Recognizes the dialect of a conversation by its shape.

/** Members that contain a part of the conversation outside of that list. */
export const SYSTEM_MEMBERS = ['system', 'instructions', 'systemInstruction', 'system_instruction'];

const array = (value) => (Array.isArray(value) ? value : []);
const has = (value, key) => typeof value === 'object' && value !== null && Object.hasOwn(value, key);
const MISTRAL = /^(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral)/i;
const ANTHROPIC_BLOCKS = /^(tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|container_upload|search_result|mcp_tool_(use|result)|\w+_tool_result)$/;
const GEMINI_DATA = ['text', 'functionCall', 'functionResponse', 'function_call', 'function_response', 'inlineData', 'inline_data', 'fileData', 'file_data', 'executableCode', 'codeExecutionResult'];
const CHAT_PARTS = /^(image_url|input_audio|refusal)$/;

/** Returns the dialect that a message indicates and the reason, as [dialect, sentence], or null. "chat" means openai-chat or mistral. */
function evidenceOf(message) {
  // Parts with a `type` belong to messages of an SDK.
  const part = [message?.parts].flat().find((one) => has(one, 'type') === false && GEMINI_DATA.some((key) => has(one, key)));
  if (part) return ['gemini', `a part has \`${GEMINI_DATA.find((key) => has(part, key))}\` and no type`];
  if (/^(function_call|function_call_output|custom_tool_call|custom_tool_call_output|reasoning|item_reference)$/.test(message?.type)) {
    return ['openai-responses', `an item is of type \`${message.type}\``];
  }
  if (message?.prefix === true) return ['mistral', 'a message has `prefix`'];
  if (array(message?.tool_calls).length) return ['chat', 'a message has `tool_calls`'];
  if (message?.role === 'tool' && has(message, 'tool_call_id')) return ['chat', 'a message has the role `tool`'];
  if (message?.role === 'developer') return ['chat', 'a message has the role `developer`'];
  // Blocks of Bedrock, which name their type by a key, look like Anthropic's but are not a supported dialect.
  if (array(message?.content).some((block) => typeof block === 'object' && !has(block, 'type'))) return ['other', ''];
  for (const { type, source, thinking } of array(message?.content).filter((block) => typeof block === 'object' && block !== null)) {
    if (type === 'thinking' && Array.isArray(thinking)) return ['mistral', 'a message has `thinking` with parts'];
    if (ANTHROPIC_BLOCKS.test(type) || (type === 'image' && source)) return ['anthropic', `a message has a \`${type}\` block`];
    if (/^(input_text|output_text|input_image|input_file)$/.test(type)) return ['openai-responses', `a message has an \`${type}\` part`];
    if (CHAT_PARTS.test(type)) return ['chat', `a message has an \`${type}\` part`];
  }
  return null;
}

function allEvidence(body, items) {
  const found = items.map(evidenceOf).filter(Boolean);
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

/** Returns {dialect, why}, or null if the evidence is missing or contradictory. */
export function guessDialect({ value, items }) {
  const body = items || typeof value !== 'object' ? null : value;
  const list = items ?? array(body?.messages ?? body?.contents ?? body?.input);
  let found = allEvidence(body, list);
  // Mistral's format is the chat format with additional keys and other models.
  if (found.some(([dialect]) => dialect === 'mistral')) found = found.filter(([dialect]) => dialect !== 'chat');
  const dialects = new Set(found.map(([dialect]) => dialect));
  if (dialects.size !== 1 || dialects.has('other')) return null;
  const [dialect, why] = found[0];
  if (dialect !== 'chat') return { dialect, why };
  const ids = list.flatMap((message) => array(message?.tool_calls).map((call) => call?.id));
  // Both services use this format; ids of nine letters and digits are Mistral's.
  if (ids.length && ids.every((id) => /^[A-Za-z0-9]{9}$/.test(id))) return { dialect: 'mistral', why: `${why}, with ids of nine characters` };
  return { dialect: 'openai-chat', why };
}
