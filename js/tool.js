// Tools whose `parameters` are a Standard Schema (zod, valibot, arktype): the JSON Schema for the model, and validation
// of the arguments. Uses only the interface of the schema object: https://standardschema.dev

import { RethreadError } from './error.js';
import { isList, memberOf, reasonOf, textOf } from './untrusted-value.js';

/** Anthropic accepts only the first; the second is for libraries that support nothing newer. */
const TARGETS = ['draft-2020-12', 'draft-07'];
/** Maximum number of issues that are reported to the model. */
const MAX_ISSUES = 20;
/** Maximum length of one issue: some libraries quote the whole invalid value. */
const MAX_ISSUE_LENGTH = 500;

/**
 * What `execute` of an asynchronous tool returns if its result comes later (types.d.ts). Copies of this package have
 * the same.
 * @type {typeof import('./types/tool.js').pending}
 */
export const pending = /** @type {any} */ (Symbol.for('rethread.pending'));

/** Returns the tool unchanged; its purpose is the type (types.d.ts). */
export function defineTool(tool) {
  if (typeof tool !== 'object' || tool === null)
    throw new RethreadError('config_invalid', '`defineTool` takes a tool: `{ description, parameters, execute }`');
  return tool;
}

const isObject = (value) => typeof value === 'object' && value !== null && !isList(value);
const isFunction = (value) => typeof value === 'function';
const standardOf = (schema) => memberOf(schema, '~standard');
const isStandardSchema = (schema) => isFunction(memberOf(standardOf(schema), 'validate'));

/** A copy of the request in which the `parameters` of each tool are a JSON Schema. The application's tools are not
 *  changed. */
export function withJsonSchemas(request) {
  const tools = memberOf(request, 'tools');
  if (!isObject(tools)) return request;
  const plain = Object.entries(tools).map(([name, tool]) => [name, plainTool(name, tool)]);
  return { ...request, tools: Object.fromEntries(plain) };
}

/** The options of `Session.answer`, with what it needs of the tools: `persist`. */
export function answerOptions(options) {
  const tools = memberOf(options, 'tools');
  if (!isObject(tools)) return options;
  const plain = Object.entries(tools).map(([name, tool]) => {
    const persist = memberOf(tool, 'persist');
    return [name, isObject(tool) ? { persist: isFunction(persist) ? persist.bind(tool) : persist } : tool];
  });
  return { ...options, tools: Object.fromEntries(plain) };
}

function plainTool(name, tool) {
  const parameters = memberOf(tool, 'parameters') ?? undefined;
  const schema = memberOf(tool, 'jsonSchema') ?? jsonSchemaOf(name, parameters);
  // Inherits the other members: the tool may be an instance of a class.
  return schema === parameters ? tool : Object.create(tool, { parameters: { value: schema, enumerable: true } });
}

const fail = (name, problem, cause) => {
  throw new RethreadError(
    'config_invalid',
    `\`parameters\` of the tool "${name}" ${problem}`,
    {},
    cause === undefined ? undefined : { cause },
  );
};

/** The JSON Schema of `parameters`: a JSON Schema or a Standard Schema. */
function jsonSchemaOf(name, parameters) {
  if (parameters === undefined) return undefined;
  if (isStandardSchema(parameters)) return objectSchema(name, jsonSchemaFrom(name, parameters));
  if (isObject(parameters) && !isFunction(memberOf(parameters, 'safeParse'))) return parameters;
  return fail(
    name,
    'is neither a JSON Schema (an object) nor a Standard Schema (an object with `~standard`); for a schema of an older library pass its JSON Schema',
  );
}

/** Generates the JSON Schema of a Standard Schema's input. */
function jsonSchemaFrom(name, schema) {
  const standard = memberOf(standardOf(schema), 'jsonSchema');
  const writers = isFunction(memberOf(standard, 'input'))
    ? TARGETS.map((target) => () => standard.input({ target }))
    : isFunction(memberOf(schema, 'toJsonSchema'))
      ? [() => schema.toJsonSchema()]
      : [];
  if (writers.length === 0) {
    fail(
      name,
      'is a Standard Schema that cannot be written as JSON Schema. Pass its JSON Schema as `jsonSchema` beside it, or a schema that can: ' +
        'zod from 4.2, arktype from 2.1.28, `toStandardJsonSchema(schema)` of `@valibot/to-json-schema`',
    );
  }
  /** @type {{ error: unknown } | undefined} */
  let failure;
  for (const write of writers) {
    try {
      return write();
    } catch (error) {
      failure ??= { error };
    }
  }
  return fail(
    name,
    `cannot be written as JSON Schema: ${reasonOf(failure?.error)}. Pass a JSON Schema as \`jsonSchema\` beside it`,
    failure?.error,
  );
}

/** A schema of an object, without the member that names the draft: providers reject or ignore it. */
function objectSchema(name, schema) {
  if (!isObject(schema))
    fail(name, 'is a schema whose JSON Schema is not an object; pass one as `jsonSchema` beside it');
  const { $schema: _, ...rest } = schema;
  if (rest.type !== undefined && rest.type !== 'object')
    fail(name, `is the schema of a value of type "${rest.type}"; a tool's arguments must be an object`);
  return rest;
}

/** True if the arguments of the tool are validated. */
export const validates = (tool) => isStandardSchema(memberOf(tool, 'parameters'));

/** Validates the arguments of a call. Returns the transformed arguments as `{ value }`, or `{ problem }` for the
 *  model's error result. Never rejects. */
export async function validateArguments(tool, args) {
  try {
    const result = await tool.parameters['~standard'].validate(args);
    const { issues } = result;
    if (!issues) return { value: result.value };
    return {
      problem: `the arguments are not valid, so the tool was not run. ${described(issues)}. Call it again with valid arguments.`,
    };
  } catch (error) {
    return { problem: `the arguments could not be validated, so the tool was not run: ${reasonOf(error)}` };
  }
}

function described(issues) {
  const list = Array.from(issues);
  const shown = list.slice(0, MAX_ISSUES).map(issueText);
  if (list.length > shown.length) shown.push(`and ${list.length - shown.length} more`);
  return shown.join('; ');
}

/** An issue with its path: `items[0].name: Required`. */
function issueText(issue) {
  const message = (textOf(issue, 'message') || 'invalid').slice(0, MAX_ISSUE_LENGTH);
  const path = pathText(memberOf(issue, 'path'));
  // Some libraries start the message with the path.
  return path && !message.startsWith(path) ? `${path}: ${message}` : message;
}

function pathText(path) {
  let text = '';
  for (const segment of Array.isArray(path) ? path : []) {
    const key = isObject(segment) ? segment.key : segment;
    if (typeof key === 'number') text += `[${key}]`;
    else text += `${text && '.'}${String(key)}`;
  }
  return text;
}
