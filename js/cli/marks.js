// What the conversations of a dialect have and those of others do not.
// Made from spec.rs and recognition.rs of src/provider/*. Do not edit: `BLESS=1 cargo test --no-default-features --lib r65_` writes it.

/**
 * By dialect, variants before the dialect that they are a variant of. What each means: `Marks` in src/provider/spec/recognition.rs.
 *
 * @type {Record<string, import('./dialect.js').Marks>}
 */
export const MARKS = {
  mistral: {
    family: 'openai-chat',
    flag: 'prefix',
    listInBlock: 'thinking',
    models: /^(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral)/i,
    callIds: /^[A-Za-z0-9]{9}$/,
    callIdWords: 'ids of nine characters',
  },
  'openai-chat': {
    list: 'tool_calls',
    roles: { tool: 'tool_call_id', developer: null },
    blockTypes: /^(image_url|input_audio|refusal)$/,
    blockWord: 'part',
    toolMember: 'function',
  },
  'openai-responses': {
    itemTypes: ['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'reasoning', 'item_reference'],
    blockTypes: /^(input_text|output_text|input_image|input_file)$/,
    blockWord: 'part',
    bodyMember: 'input',
    withoutMembers: ['messages'],
  },
  anthropic: {
    blockWithMember: ['image', 'source'],
    blockTypes: /^(tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|container_upload|search_result|mcp_tool_(use|result)|\w+_tool_result)$/,
    blockWord: 'block',
    besideMessages: 'system',
    toolMember: 'input_schema',
  },
  gemini: {
    partMembers: ['text', 'functionCall', 'functionResponse', 'function_call', 'function_response', 'inlineData', 'inline_data', 'fileData', 'file_data', 'executableCode', 'codeExecutionResult'],
    bodyMember: 'contents',
  },
  bedrock: {
    blockMembers: ['toolUse', 'toolResult', 'reasoningContent', 'cachePoint', 'citationsContent', 'guardContent', 'text', 'image', 'document', 'video', 'audio'],
    bodyMember: 'inferenceConfig',
    besideMessages: 'system',
  },
  'mistral-conversations': {
    itemTypes: ['message.input', 'message.output', 'function.call', 'function.result', 'tool.execution', 'agent.handoff'],
    bodyMember: 'inputs',
    besideMember: ['model', 'agent_id', 'completion_args', 'instructions'],
    withoutMembers: ['messages', 'parameters'],
  },
  'gemini-interactions': {
    itemTypes: ['user_input', 'model_output', 'thought', 'function_result'],
    bodyMember: 'system_instruction',
    withoutMembers: ['contents'],
  },
};
