// What Bedrock's Converse refuses, in its own words. Shares no code with the engine.

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ID = /^[a-zA-Z0-9_.:-]{1,64}$/;
const KINDS = new Set(
  `text image document video audio toolUse toolResult reasoningContent cachePoint guardContent citationsContent
  searchResult toolAddition toolRemoval`.split(/\s+/),
);
/** Models that take the user's words beside results; recorded of both. */
const MIXES = /claude|nova/;

class Refusal extends Error {}
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const isBlank = (text) => typeof text === 'string' && text.trim() === '';

export const errorBody = (message) => ({ message });
const refuse = (message) => {
  throw new Refusal(message);
};
const constraint = (value, at, rule) =>
  refuse(
    `1 validation error detected: Value '${value}' at '${at}' failed to satisfy constraint: Member must satisfy ${rule}`,
  );
const notObject = (at) =>
  refuse(`The format of the value at ${at} is invalid. Provide a json object for the field and try again.`);

function checkText(text, at) {
  if (typeof text !== 'string') constraint(text, `${at}.text`, 'type string');
  if (isBlank(text))
    refuse(`The text field in the ContentBlock object at ${at} is blank. Add text to the text field, and try again.`);
}

function checkResult({ toolUseId, content, status }, at) {
  if (!ID.test(toolUseId)) constraint(toolUseId, `${at}.toolUseId`, 'regular expression pattern: [a-zA-Z0-9_.:-]+');
  if (!Array.isArray(content)) constraint(content, `${at}.content`, 'type list');
  if (status !== undefined && !['success', 'error'].includes(status))
    constraint(status, `${at}.status`, 'enum value set: [success, error]');
  if (status === 'error' && !content.length)
    refuse(`The content field at ${at} cannot be empty when status value is error.`);
  content.forEach((block, i) => {
    if (block?.text !== undefined) checkText(block.text, `${at}.content.${i}`);
    if (block?.json !== undefined && !isObject(block.json)) notObject(`${at}.content.${i}.json`);
  });
}

function checkBlock(block, role, at) {
  if (!isObject(block)) constraint(JSON.stringify(block), at, 'type ContentBlock');
  const [kind, ...others] = Object.keys(block);
  // A block of a kind that is not known here may be a new one.
  if (!kind || others.length || (!KINDS.has(kind) && !isObject(block[kind])))
    constraint(JSON.stringify(block), at, 'exactly one member of ContentBlock');
  if (kind === 'text') checkText(block.text, at);
  if (role === 'user' && kind === 'reasoningContent')
    refuse('User messages cannot contain reasoning content. Please remove the reasoning content and try again.');
  if (role === 'user' && kind === 'toolUse') refuse('User messages cannot contain tool uses.');
  if (kind === 'toolUse') {
    const { toolUseId, name, input, type } = block.toolUse;
    if (!ID.test(toolUseId))
      constraint(toolUseId, `${at}.toolUse.toolUseId`, 'regular expression pattern: [a-zA-Z0-9_.:-]+');
    if (!NAME.test(name)) constraint(name, `${at}.toolUse.name`, 'regular expression pattern: [a-zA-Z0-9_-]+');
    if (!isObject(input)) notObject(`${at}.toolUse.input`);
    if (type !== undefined && type !== 'server_tool_use')
      constraint(type, `${at}.toolUse.type`, 'enum value set: [server_tool_use]');
  }
  if (kind === 'toolResult') checkResult(block.toolResult, `${at}.toolResult`);
}

/** Claude's models know their thinking by its signature (maximhq/bifrost#6942); Nova's and others send none. */
function checkSignatures(messages) {
  messages.forEach(({ content }, i) => {
    content.forEach(({ reasoningContent }, k) => {
      if (reasoningContent?.reasoningText && typeof reasoningContent.reasoningText.signature !== 'string')
        refuse(
          `The model returned the following errors: messages.${i}.content.${k}.thinking.signature: Field required`,
        );
    });
  });
}

/** What Claude's models do not take (recorded). */
function checkMedia(messages) {
  messages.forEach(({ content }, i) => {
    content.forEach(({ toolResult, ...block }, k) => {
      for (const { image, video } of [block, ...(toolResult?.content ?? [])]) {
        if (image?.source?.s3Location)
          refuse("This model doesn't support the s3Uri field. Remove s3Uri and try again.");
        if (video)
          refuse(
            "This model doesn't support the video content block that you provided. Update the content block and try again.",
          );
      }
      if (block.document?.source?.s3Location)
        refuse(
          `The model returned the following errors: messages.${i}.content.${k}.document.source.type: Field required`,
        );
    });
  });
}

/** Names of documents: their characters, and that each is there once in a request. */
function checkDocumentNames(messages) {
  const names = new Set();
  for (const { content } of messages) {
    for (const block of content.flatMap((block) => [block, ...(block.toolResult?.content ?? [])])) {
      const name = block.document?.name;
      if (!block.document) continue;
      if (!/^[A-Za-z0-9\s()[\]-]{1,200}$/.test(name ?? '') || /\s\s/.test(name))
        refuse(
          "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.",
        );
      if (names.has(name))
        refuse("Messages can't contain duplicate document names. Rename the document and retry your request.");
      names.add(name);
    }
  }
}

function checkMessage({ role, content }, i) {
  const at = `messages.${i}`;
  if (!['user', 'assistant', 'system'].includes(role))
    constraint(role, `${at}.role`, 'enum value set: [user, assistant]');
  if (!Array.isArray(content)) constraint(content, `${at}.content`, 'type list');
  if (!content.length)
    refuse(
      `The content field in the Message object at ${at} is empty. Add a ContentBlock object to the content field and try again.`,
    );
  content.forEach((block, k) => checkBlock(block, role, `${at}.content.${k}`));
  const has = (kind) => content.some((block) => block[kind] !== undefined);
  if (role === 'user' && has('document') && !has('text')) refuse('A text block must be included when using documents.');
}

const callsOf = ({ content }) =>
  content.filter((b) => b.toolUse && b.toolUse.type !== 'server_tool_use').map((b) => b.toolUse.toolUseId);
const resultsOf = ({ role, content }) =>
  content.filter((b) => b.toolResult && role === 'user').map((b) => b.toolResult.toolUseId);

function checkOrder(messages, model) {
  const spoken = messages.filter((m) => m.role !== 'system');
  if (spoken[0]?.role !== 'user')
    refuse(
      'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
    );
  messages.forEach((m, i) => {
    const before = messages[i - 1];
    if (before?.role === m.role && m.role !== 'system')
      refuse(
        'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
      );
    const expected = before?.role === 'assistant' ? callsOf(before) : [];
    const results = resultsOf(m);
    if (new Set(results).size !== results.length)
      refuse(`The toolResult blocks at messages.${i}.content contain duplicate Ids: ${results.join(', ')}`);
    if (results.some((id) => !expected.includes(id)))
      refuse(
        `The number of toolResult blocks at messages.${i}.content exceeds the number of toolUse blocks of previous turn.`,
      );
    const missing = expected.filter((id) => !results.includes(id));
    if (missing.length)
      refuse(`Expected toolResult blocks at messages.${i}.content for the following Ids: ${missing.join(', ')}`);
    if (results.length && model && !MIXES.test(model) && m.content.some((b) => b.text !== undefined))
      refuse('Conversation blocks and tool result blocks cannot be provided in the same turn.');
  });
  const open = callsOf(messages.at(-1));
  if (open.length)
    refuse(
      `Expected toolResult blocks at messages.${messages.length}.content for the following Ids: ${open.join(', ')}`,
    );
}

function checkTools({ messages, toolConfig }) {
  const uses = messages.some((m) => m.content.some((b) => b.toolUse || b.toolResult));
  if (uses && !toolConfig)
    refuse('The toolConfig field must be defined when using toolUse and toolResult content blocks.');
  if (!toolConfig) return;
  if (!toolConfig.tools?.length) constraint('[]', 'toolConfig.tools', 'length greater than or equal to 1');
  const names = new Set();
  for (const { toolSpec } of toolConfig.tools) {
    if (!toolSpec) continue;
    if (!NAME.test(toolSpec.name)) constraint(toolSpec.name, 'toolConfig.tools', 'pattern [a-zA-Z0-9_-]+');
    if (names.has(toolSpec.name)) refuse(`The tool name ${toolSpec.name} is defined more than once.`);
    if (!isObject(toolSpec.inputSchema?.json)) notObject('toolConfig.tools.toolSpec.inputSchema.json');
    names.add(toolSpec.name);
  }
  const { tool } = toolConfig.toolChoice ?? {};
  if (tool && !names.has(tool.name)) refuse(`The tool ${tool.name} of toolChoice is not in the tools.`);
}

/** null when Bedrock would take the body, else the status and the error body it would answer. */
export function check(body, { model } = {}) {
  try {
    if (!isObject(body)) refuse('The request body is no object.');
    if (!Array.isArray(body.messages) || !body.messages.length)
      constraint(JSON.stringify(body.messages), 'messages', 'length greater than or equal to 1');
    if (body.system !== undefined && !Array.isArray(body.system)) constraint(body.system, 'system', 'type list');
    for (const { text } of body.system ?? [])
      if (isBlank(text)) refuse('The text field in the SystemContentBlock object at system.0 is blank.');
    body.messages.forEach(checkMessage);
    checkTools(body);
    checkOrder(body.messages, model);
    checkDocumentNames(body.messages);
    if (/claude/.test(model ?? '')) {
      checkMedia(body.messages);
      checkSignatures(body.messages);
    }
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message) };
  }
}
