// What Gemini's generateContent refuses, in its own words. Shares no code with the engine.

import { forged } from './signature.mjs';

const TOP = new Set(
  `contents systemInstruction system_instruction tools toolConfig tool_config generationConfig generation_config
  safetySettings safety_settings cachedContent cached_content labels model`.split(/\s+/),
);
/** The members of a part of which exactly one may be set. */
const DATA = [
  'text',
  'inlineData',
  'inline_data',
  'fileData',
  'file_data',
  'functionCall',
  'function_call',
  'functionResponse',
  'function_response',
  'executableCode',
  'executable_code',
  'codeExecutionResult',
  'code_execution_result',
  'toolCall',
  'tool_call',
  'toolResponse',
  'tool_response',
];
const BESIDE = [
  'thought',
  'thoughtSignature',
  'thought_signature',
  'videoMetadata',
  'video_metadata',
  'mediaResolution',
  'media_resolution',
  'partMetadata',
  'part_metadata',
];
const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
/** What Google documents for a call of another model, whose thoughts have no signature. */
const PLACEHOLDERS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'];
const STRUCT = 'type.googleapis.com/google.protobuf.Struct';

class Refusal extends Error {}
const refuse = (message) => {
  throw new Refusal(message);
};
/** To Google's reader of JSON, null is a member that is not set; so is a text of nothing. */
const isSet = (v) => v !== undefined && v !== null;
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
/** Two spellings of one member. */
const either = (object, camel) => object[camel] ?? object[camel.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)];
const unknownName = (name, at) =>
  refuse(`Invalid JSON payload received. Unknown name "${name}"${at ? ` at '${at}'` : ''}: Cannot find field.`);
const field = (at, says) => refuse(`* GenerateContentRequest.${at}: ${says}\n`);

function wantStruct(v, at) {
  if (isSet(v) && !isObject(v)) refuse(`Invalid value at '${at}' (${STRUCT}), ${JSON.stringify(v)}`);
}
function wantText(v, at) {
  if (isSet(v) && typeof v !== 'string') refuse(`Invalid value at '${at}' (TYPE_STRING), ${JSON.stringify(v)}`);
}

function checkTop(body) {
  if (!isObject(body)) refuse('Invalid JSON payload received. Expected an object.');
  for (const key of Object.keys(body)) if (!TOP.has(key)) unknownName(key);
  if (body.contents === undefined || (Array.isArray(body.contents) && !body.contents.length))
    field('contents', 'contents is not specified');
  if (!Array.isArray(body.contents))
    refuse(
      `Invalid value at 'contents' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), ${JSON.stringify(body.contents).slice(0, 40)}`,
    );
}

function checkTools({ tools }) {
  if (tools === undefined) return;
  const names = new Set();
  for (const [i, tool] of [tools].flat().entries()) {
    for (const [k, declared] of (either(tool, 'functionDeclarations') ?? []).entries()) {
      const at = `tools[${i}].function_declarations[${k}]`;
      if (!NAME.test(declared.name ?? '')) {
        field(
          `${at}.name`,
          'Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.',
        );
      }
      if (names.has(declared.name)) refuse(`Duplicate function declaration found: ${declared.name}`);
      names.add(declared.name);
      for (const key of Object.keys(declared)) {
        if (
          !/^(name|description|parameters|parametersJsonSchema|parameters_json_schema|response|responseJsonSchema|response_json_schema|behavior)$/.test(
            key,
          )
        )
          unknownName(key, at);
      }
    }
  }
}

function checkCall(call, at) {
  if (!isObject(call))
    refuse(
      `Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCall), ${JSON.stringify(call)}`,
    );
  wantText(call.id, `${at}.id`);
  wantText(call.name, `${at}.name`);
  if (!call.name) field(`${at}.name`, 'Name cannot be empty.');
  wantStruct(call.args, `${at}.args`);
}

function checkResponse(response, at) {
  if (!isObject(response))
    refuse(
      `Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionResponse), ${JSON.stringify(response)}`,
    );
  wantText(response.id, `${at}.id`);
  wantText(response.name, `${at}.name`);
  if (!response.name) field(`${at}.name`, 'Name cannot be empty.');
  if (!isSet(response.response)) field(`${at}.response`, 'response is not specified');
  wantStruct(response.response, `${at}.response`);
}

function checkPart(part, at, role) {
  if (!isObject(part))
    refuse(
      `Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part), ${JSON.stringify(part)}`,
    );
  for (const key of Object.keys(part)) if (!DATA.includes(key) && !BESIDE.includes(key)) unknownName(key, at);
  const set = DATA.filter((name) => isSet(part[name]));
  if (set.length > 1)
    refuse(`Invalid value at '${at}' (oneof), oneof field 'data' is already set. Cannot set '${set[1]}'`);
  if (!set.length && part.thought === undefined)
    field(`${at}.data`, "required oneof field 'data' must have one initialized field");
  wantText(part.text, `${at}.text`);
  const call = either(part, 'functionCall');
  const response = either(part, 'functionResponse');
  if (call) checkCall(call, `${at}.function_call`);
  if (response) checkResponse(response, `${at}.function_response`);
  if (call && role !== 'model')
    refuse(
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
    );
  const signature = either(part, 'thoughtSignature');
  // Google's clients send the signature in the alphabet of web addresses; what this server gave out fits in both.
  if (call && signature !== undefined && !PLACEHOLDERS.includes(signature) && forged(signed(call), signature))
    refuse('Corrupted thought signature.');
}

/** What the signature of a call covers: it must come back on the same call. */
export const signed = ({ name, args }) => `${name}:${JSON.stringify(args ?? {})}`;

function checkContent(content, i) {
  const at = `contents[${i}]`;
  if (!isObject(content))
    refuse(
      `Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), ${JSON.stringify(content)}`,
    );
  for (const key of Object.keys(content)) if (key !== 'role' && key !== 'parts') unknownName(key, at);
  if (isSet(content.role) && content.role !== '' && !['user', 'model', 'function'].includes(content.role))
    refuse('Please use a valid role: user, model.');
  if (!Array.isArray(content.parts) || !content.parts.length) field(`${at}.parts`, 'contents.parts must not be empty.');
  content.parts.forEach((part, k) => checkPart(part, `${at}.parts[${k}]`, content.role));
}

const NEXT = 'Please ensure that function response turn comes immediately after a function call turn.';
const COUNT =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
const countOf = (contents, name) =>
  contents.flatMap((content) => content.parts).filter((part) => either(part, name)).length;

/** Model contents in a row are one turn; all of its responses stand in the one content after it. */
function checkSequence(contents) {
  let open = 0; // calls of the model turn that has just ended
  contents.forEach((content, i) => {
    if (content.role === 'model') {
      const calls = countOf([content], 'functionCall');
      if (calls && contents.slice(0, i).every(({ role }) => role === 'model')) {
        refuse(
          'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
        );
      }
      open += calls;
      return;
    }
    const responses = countOf([content], 'functionResponse');
    if (responses && !open) refuse(NEXT);
    if (open && !responses)
      refuse(
        `${NEXT} And the number of function response parts should be equal to number of function call parts of the function call turn.`,
      );
    if (responses !== open) refuse(COUNT);
    open = 0;
  });
  if (contents.at(-1).role === 'model')
    refuse('Please ensure that multiturn requests end with a user role or a function response.');
}

/** Gemini 3: the first call of each step of the current turn, which began at the last user content that says
 *  something. */
function checkSignatures(contents, model) {
  if (!(Number(/gemini-(\d+)/.exec(model ?? '')?.[1]) >= 3)) return;
  const begins = contents.findLastIndex(
    ({ role, parts }) => role !== 'model' && parts.some((part) => !either(part, 'functionResponse')),
  );
  for (const [i, { role, parts }] of contents.entries()) {
    if (i < begins || role !== 'model' || contents[i - 1]?.role === 'model') continue;
    const at = parts.findIndex((part) => either(part, 'functionCall'));
    if (at < 0 || either(parts[at], 'thoughtSignature')) continue;
    refuse(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${either(parts[at], 'functionCall').name}\` , position ${i + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    );
  }
}

export function errorBody(message, { code = 400, status = 'INVALID_ARGUMENT' } = {}) {
  return { error: { code, message, status } };
}

/** null when Gemini would take the body, else the status and the error body it would answer. `model` comes from the
 *  address. */
export function check(body, { model } = {}) {
  try {
    checkTop(body);
    checkTools(body);
    body.contents.forEach(checkContent);
    checkSequence(body.contents);
    checkSignatures(body.contents, model);
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message) };
  }
}
