// Tools whose `parameters` are a Standard Schema (zod, valibot, arktype): the JSON Schema that the model is told, and the validation
// of the arguments that it writes. Only what the schema object itself offers is used: https://standardschema.dev

import { RethreadError } from './error.js';
import { isList, memberOf, reasonOf, textOf } from './foreign.js';

/** Anthropic takes no other; the second is for libraries that only know that one. */
const TARGETS = ['draft-2020-12', 'draft-07'];
/** So many issues are told to the model: a list of thousands of wrong items says nothing more. */
const MOST_ISSUES = 20;
/** Some libraries quote the value that is wrong, however long it is. */
const LONGEST_ISSUE = 500;

/** Gives the tool back; its types are the point. */
export function defineTool(tool) {
  if (typeof tool !== 'object' || tool === null) throw new RethreadError('config_invalid', '`defineTool` takes a tool: `{ description, parameters, execute }`');
  return tool;
}

const isObject = (value) => typeof value === 'object' && value !== null && !isList(value);
const isFunction = (value) => typeof value === 'function';
const standardOf = (schema) => memberOf(schema, '~standard');
const isStandardSchema = (schema) => isFunction(memberOf(standardOf(schema), 'validate'));

/** The request as the core takes it: each tool with a JSON Schema for its `parameters`. The application's tools stay as they are. */
export function withJsonSchemas(request) {
  const tools = memberOf(request, 'tools');
  if (!isObject(tools)) return request;
  const plain = Object.entries(tools).map(([name, tool]) => [name, plainTool(name, tool)]);
  return { ...request, tools: Object.fromEntries(plain) };
}

function plainTool(name, tool) {
  const parameters = memberOf(tool, 'parameters') ?? undefined;
  const told = memberOf(tool, 'jsonSchema') ?? jsonSchemaOf(name, parameters);
  // All else is read from the tool itself, which may be an object of a class.
  return told === parameters ? tool : Object.create(tool, { parameters: { value: told, enumerable: true } });
}

const refuse = (name, what, cause) => {
  throw new RethreadError('config_invalid', `\`parameters\` of the tool "${name}" ${what}`, {}, cause === undefined ? undefined : { cause });
};

/** The JSON Schema of what `parameters` may be: one already, or a Standard Schema. */
function jsonSchemaOf(name, parameters) {
  if (parameters === undefined) return undefined;
  if (isStandardSchema(parameters)) return objectSchema(name, written(name, parameters));
  if (isObject(parameters) && !isFunction(memberOf(parameters, 'safeParse'))) return parameters;
  return refuse(name, 'is neither a JSON Schema (an object) nor a Standard Schema (an object with `~standard`); schemas of an older library: pass their JSON Schema');
}

/** The JSON Schema that a Standard Schema writes of its input. */
function written(name, schema) {
  const standard = memberOf(standardOf(schema), 'jsonSchema');
  const writers = isFunction(memberOf(standard, 'input')) ? TARGETS.map((target) => () => standard.input({ target }))
    : isFunction(memberOf(schema, 'toJsonSchema')) ? [() => schema.toJsonSchema()] : [];
  if (writers.length === 0) {
    refuse(name, 'is a Standard Schema that cannot be written as JSON Schema. Pass its JSON Schema as `jsonSchema` beside it, or a schema that can: '
      + 'zod from 4.2, arktype from 2.1.28, `toStandardJsonSchema(schema)` of `@valibot/to-json-schema`');
  }
  let failure;
  for (const write of writers) {
    try {
      return write();
    } catch (error) {
      failure ??= { error };
    }
  }
  return refuse(name, `cannot be written as JSON Schema: ${reasonOf(failure.error)}. Pass a JSON Schema as \`jsonSchema\` beside it`, failure.error);
}

/** A schema of an object, without the member that names the draft: providers refuse it or pass it over. */
function objectSchema(name, schema) {
  if (!isObject(schema)) refuse(name, 'is a schema whose JSON Schema is no object; pass one as `jsonSchema` beside it');
  const { $schema: _, ...rest } = schema;
  if (rest.type !== undefined && rest.type !== 'object') refuse(name, `is the schema of a value of type "${rest.type}"; a tool's arguments are an object`);
  return rest;
}

/** Whether a tool's arguments are validated. */
export const validates = (tool) => isStandardSchema(memberOf(tool, 'parameters'));

/** The arguments as the tool takes them: `{ value }`, or `{ refusal }`, which the model is told. Never rejects. */
export async function validateArguments(tool, given) {
  try {
    const result = await tool.parameters['~standard'].validate(given);
    const { issues } = result;
    if (!issues) return { value: result.value };
    return { refusal: `the arguments are not valid, so the tool was not run. ${described(issues)}. Call it again with valid arguments.` };
  } catch (error) {
    return { refusal: `the arguments could not be validated, so the tool was not run: ${reasonOf(error)}` };
  }
}

function described(issues) {
  const list = Array.from(issues);
  const told = list.slice(0, MOST_ISSUES).map(issueText);
  if (list.length > told.length) told.push(`and ${list.length - told.length} more`);
  return told.join('; ');
}

/** An issue with its place: `items[0].name: Required`. */
function issueText(issue) {
  const message = (textOf(issue, 'message') || 'invalid').slice(0, LONGEST_ISSUE);
  const path = pathText(memberOf(issue, 'path'));
  // Some libraries begin with the place themselves.
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
