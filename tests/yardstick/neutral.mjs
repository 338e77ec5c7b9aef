// A body as neutral messages, where these can say what it says; else null: then only the body shows the defect.

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

class OnlyAsBody extends Error {}
const only = (why) => {
  throw new OnlyAsBody(why);
};

/** Fails if the object has another member than these. */
function members(object, ...known) {
  if (!isObject(object)) only('something in it is no object');
  for (const key of Object.keys(object)) if (!known.includes(key)) only(`it has the member ${key}`);
  return object;
}
const text = (value) => (typeof value === 'string' ? value : only('a text is no string'));
const id = (value) => (typeof value === 'string' ? value : only('an id is no string'));

function parsed(value) {
  if (typeof value !== 'string') only('the arguments are no string');
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

const listOf = (value) => (Array.isArray(value) ? value : only('the content is no list'));
const textPart = (value) => ({ type: 'text', text: text(value) });
const callPart = (callId, name, input) => ({ type: 'call', id: id(callId), name: text(name), input });
const resultPart = (callId, value, isError) => ({
  type: 'result',
  id: id(callId),
  text: text(value),
  ...(isError && { isError: true }),
});
const message = (role, parts) => ({ role, parts });

/** Texts of a result or message: a string, or text blocks. */
function joined(content, textOf) {
  if (typeof content === 'string') return content;
  if (!listOf(content).length) only('a list is empty');
  return content.map(textOf).join('');
}

function chatMessage(given) {
  const one = members(given, 'role', 'content', 'tool_calls', 'tool_call_id', 'name', 'reasoning_content');
  const blocks = (content) =>
    typeof content === 'string'
      ? [textPart(content)]
      : listOf(content).map((part) =>
          part.type === 'text'
            ? textPart(members(part, 'type', 'text').text)
            : only(`it has a part of type ${part.type}`),
        );
  if (one.role === 'tool') {
    const result = resultPart(
      one.tool_call_id,
      joined(one.content, (part) => part.text ?? only('a part has no text')),
    );
    return message('tool', [{ ...result, ...(one.name !== undefined && { name: text(one.name) }) }]);
  }
  if (one.role === 'system' || one.role === 'user') {
    members(given, 'role', 'content');
    return message(one.role, blocks(one.content));
  }
  if (one.role !== 'assistant') only(`it has the role ${one.role}`);
  members(given, 'role', 'content', 'tool_calls', 'reasoning_content');
  if (one.tool_calls && !one.tool_calls.length) only('a list of calls is empty');
  const parts = [];
  if (typeof one.reasoning_content === 'string') parts.push({ type: 'reasoning', text: one.reasoning_content });
  else if (one.reasoning_content !== undefined) only('reasoning is null');
  if (one.content !== null && one.content !== undefined) parts.push(...blocks(one.content));
  for (const call of one.tool_calls ?? []) {
    members(call, 'id', 'type', 'function');
    members(call.function, 'name', 'arguments');
    parts.push(callPart(call.id, call.function.name, parsed(call.function.arguments)));
  }
  return message('assistant', parts);
}

function responsesItem(given) {
  if (!isObject(given)) only('an item is no object');
  if (given.type === 'function_call') {
    const { call_id, name, arguments: input } = members(given, 'type', 'id', 'call_id', 'name', 'arguments', 'status');
    return message('assistant', [{ ...callPart(call_id, name, parsed(input)), ...(given.id && { itemId: given.id }) }]);
  }
  if (given.type === 'function_call_output') {
    const { call_id, output } = members(given, 'type', 'call_id', 'output');
    return message('tool', [resultPart(call_id, output)]);
  }
  if (given.type === 'reasoning') {
    const one = members(given, 'type', 'id', 'summary', 'encrypted_content');
    const part = { type: 'reasoning', text: one.summary.map((summary) => text(summary.text)).join('\n\n') };
    if (one.id) part.itemId = one.id;
    if (one.encrypted_content) part.encrypted = one.encrypted_content;
    return message('assistant', [part]);
  }
  const { role, content } = members(given, 'type', 'role', 'content', 'id', 'status');
  if (given.type !== undefined && given.type !== 'message') only(`it has an item of type ${given.type}`);
  if (!['user', 'assistant', 'system', 'developer'].includes(role)) only(`it has the role ${role}`);
  const blocks = typeof content === 'string' ? [textPart(content)] : listOf(content).map((part) => responsesPart(part));
  const itemId = given.id && { itemId: given.id };
  return message(
    role === 'developer' ? 'system' : role,
    blocks.map((block) => ({ ...block, ...itemId })),
  );
}

function responsesPart(part) {
  if (part?.type !== 'input_text' && part?.type !== 'output_text') only(`it has a part of type ${part?.type}`);
  return textPart(part.text);
}

function anthropicBlock(block) {
  switch (block?.type) {
    case 'text':
      return textPart(members(block, 'type', 'text').text);
    case 'tool_use':
      members(block, 'type', 'id', 'name', 'input');
      return callPart(block.id, block.name, block.input ?? only('a call has no input'));
    case 'tool_result':
      members(block, 'type', 'tool_use_id', 'content', 'is_error');
      return resultPart(
        block.tool_use_id,
        block.content === undefined
          ? only('a result has no content')
          : joined(block.content, (part) =>
              part?.type === 'text' ? part.text : only('a result has a part that is no text'),
            ),
        block.is_error,
      );
    case 'thinking': {
      const { thinking, signature } = members(block, 'type', 'thinking', 'signature');
      return {
        type: 'reasoning',
        text: text(thinking),
        ...(signature !== undefined && { signature: text(signature) }),
      };
    }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', redacted: text(members(block, 'type', 'data').data) };
    default:
      return only(`it has a block of type ${block?.type}`);
  }
}

/** Messages of one role: results stand apart from what the user says. */
function apart(role, parts) {
  if (role !== 'user') {
    if (parts.some((part) => part.type === 'result')) only('an answer contains a result');
    return [message(role, parts)];
  }
  if (parts.some((part) => part.type === 'call')) only('a message of the user contains a call');
  const messages = parts.length ? [] : [message(role, [])];
  for (const part of parts) {
    const own = part.type === 'result' ? 'tool' : 'user';
    if (messages.at(-1)?.role === own) messages.at(-1).parts.push(part);
    else messages.push(message(own, [part]));
  }
  return messages;
}

function anthropicMessage(given) {
  const { role, content } = members(given, 'role', 'content');
  if (!['user', 'assistant', 'system'].includes(role)) only(`it has the role ${role}`);
  return apart(role, typeof content === 'string' ? [textPart(content)] : listOf(content).map(anthropicBlock));
}

/** Calls and responses of Gemini have no ids: they are numbered, and a response is that of the first open call of
 *  its name. */
function geminiContents() {
  let made = 0;
  const open = [];
  const newId = () => `call_${(made += 1)}`;
  const part = (given) => {
    if (!isObject(given)) only('a part is no object');
    if (given.functionCall) {
      const { thoughtSignature } = members(given, 'functionCall', 'thoughtSignature');
      const call = members(given.functionCall, 'id', 'name', 'args');
      const one = callPart(call.id ?? newId(), call.name, call.args ?? {});
      open.push(one);
      return { ...one, ...(thoughtSignature && { signature: thoughtSignature }) };
    }
    if (given.functionResponse) {
      members(given, 'functionResponse');
      const response = members(given.functionResponse, 'id', 'name', 'response');
      const at = open.findIndex((call) => (response.id ? call.id === response.id : call.name === response.name));
      const [found] = at < 0 ? [] : open.splice(at, 1);
      const { result, error } = members(response.response, 'result', 'error');
      return {
        ...resultPart(response.id ?? found?.id ?? newId(), result ?? error, error !== undefined),
        name: text(response.name),
      };
    }
    const { thought, thoughtSignature } = members(given, 'text', 'thought', 'thoughtSignature');
    const said = thought ? { type: 'reasoning', text: text(given.text) } : textPart(given.text);
    return { ...said, ...(thoughtSignature && { signature: thoughtSignature }) };
  };
  return (given) => {
    const { role, parts } = members(given, 'role', 'parts');
    if (role !== 'user' && role !== 'model') only(`it has the role ${role}`);
    return apart(role === 'model' ? 'assistant' : role, listOf(parts).map(part));
  };
}

function bedrockBlock(block) {
  if (!isObject(block)) only('a block is no object');
  if (block.toolUse) {
    const call = members(members(block, 'toolUse').toolUse, 'toolUseId', 'name', 'input');
    return callPart(call.toolUseId, call.name, call.input ?? only('a call has no input'));
  }
  if (block.toolResult) {
    const result = members(members(block, 'toolResult').toolResult, 'toolUseId', 'content', 'status');
    return resultPart(
      result.toolUseId,
      joined(result.content, (part) => members(part, 'text').text),
      result.status === 'error',
    );
  }
  if (block.reasoningContent) {
    const { text: thought, signature } = members(
      members(members(block, 'reasoningContent').reasoningContent, 'reasoningText').reasoningText,
      'text',
      'signature',
    );
    return { type: 'reasoning', text: text(thought), ...(signature && { signature }) };
  }
  return textPart(members(block, 'text').text);
}

function bedrockMessage(given) {
  const { role, content } = members(given, 'role', 'content');
  if (role !== 'user' && role !== 'assistant') only(`it has the role ${role}`);
  return apart(role, listOf(content).map(bedrockBlock));
}

/** By dialect: the member with the conversation, those beside it that change nothing, and what reads one message. */
const READERS = {
  'openai-chat': { list: 'messages', beside: ['model', 'tools'], reader: () => (one) => [chatMessage(one)] },
  mistral: { list: 'messages', beside: ['model', 'tools'], reader: () => (one) => [chatMessage(one)] },
  'openai-responses': {
    list: 'input',
    beside: ['model', 'tools', 'store'],
    reader: () => (one) => [responsesItem(one)],
  },
  anthropic: {
    list: 'messages',
    beside: ['model', 'max_tokens', 'tools', 'system', 'thinking'],
    reader: () => anthropicMessage,
  },
  gemini: { list: 'contents', beside: ['model', 'tools'], reader: geminiContents },
  bedrock: { list: 'messages', beside: ['modelId', 'toolConfig'], reader: () => bedrockMessage },
};

/** Items in a row of one answer, or of one batch of results, are one message where they are items of their own. */
function together(messages) {
  const joinedMessages = [];
  for (const one of messages) {
    const before = joinedMessages.at(-1);
    if (before && before.role === one.role && one.role !== 'user' && one.role !== 'system')
      before.parts.push(...one.parts);
    else joinedMessages.push({ ...one, parts: [...one.parts] });
  }
  return joinedMessages;
}

/** `{ messages, thinking? }`, or `{ onlyAsBody }` with the reason. */
export function neutralOf(body, dialect) {
  const { list, beside, reader } = READERS[dialect];
  try {
    for (const key of Object.keys(body))
      if (key !== list && !beside.includes(key)) only(`it is about the setting ${key}`);
    const read = reader();
    if (!Array.isArray(body[list])) only('the conversation is no list');
    const messages = body[list].flatMap((one) => read(one));
    if (body.system !== undefined) messages.unshift(message('system', [textPart(body.system)]));
    const perItem = dialect === 'openai-responses';
    return {
      messages: perItem ? together(messages) : messages,
      ...(body.thinking && { thinking: body.thinking }),
    };
  } catch (error) {
    if (!(error instanceof OnlyAsBody)) throw error;
    return { onlyAsBody: error.message };
  }
}
