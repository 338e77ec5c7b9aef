// Reads and writes conversations: files and standard input.
//
// Text is passed on as it is written; it is parsed only to recognize its form.

import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { RethreadError, validate } from '../entry/formats-node.js';
import { conversationsIn, isMessage } from './envelope.js';
import { rulesIn } from './explain.js';
import { Misuse } from './misuse.js';

const REASONS = { ENOENT: 'no such file', EISDIR: 'it is a folder', EACCES: 'permission denied' };

export async function bytesOf(file, stdin) {
  if (file === '-') {
    if (stdin.isTTY) throw new Misuse('`-` reads standard input, but nothing is piped into it');
    const chunks = [];
    for await (const chunk of stdin) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Misuse(`${file} cannot be read: ${REASONS[error.code] ?? error.message}`);
  }
}

function textOf(bytes, name) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Misuse(`${name} is not UTF-8 text; pass JSON in UTF-8`);
  }
}

const trimmedText = (text) => text.replace(/^\ufeff/, '').trim();

const parsed = (text) => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

/** Returns the position of the first syntax error of a text, as line and column. */
function syntaxErrorPosition(text) {
  let at = null;
  try {
    const [{ message }] = validate(text, 'openai-chat');
    at = /at byte (\d+)/.exec(message)?.[1];
  } catch (error) {
    if (!(error instanceof RethreadError)) throw error;
  }
  if (at === null || at === undefined) return 'an unknown position';
  const before = Buffer.from(text).subarray(0, Number(at)).toString('utf8');
  const line = before.split('\n').length;
  return `line ${line}, column ${before.length - before.lastIndexOf('\n')}`;
}

/** The begin of JSON, or of a conversation in it: such a line is not skipped. */
const CUT_JSON = /^[{[]\s*["{[]|"(?:messages|contents|input)"\s*:\s*\[/;
const NOT_JSON = 'this line is not JSON: it was cut or escaped';
/** So many brackets of a line of a log are tried as the begin of its JSON. */
const MAX_BRACKETS = 16;

/** The lines with something in them as {text, number, value}; `value` is undefined for a line that is not JSON. */
function linesOf(text) {
  const lines = text
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line, i) => ({ text: line.trim(), number: i + 1 }))
    .filter((line) => line.text);
  return lines.map((line) => ({ ...line, value: parsed(line.text)?.value }));
}

/** The JSON that a line of a log ends with, after its level, time and name: {text, value}; null if there is none. */
function jsonAtEnd(line) {
  const last = Math.max(line.lastIndexOf('}'), line.lastIndexOf(']')) + 1;
  let at = -1;
  // A tag such as `[app]` may precede it.
  for (let tries = 0; tries < MAX_BRACKETS; tries += 1) {
    const next = line.slice(at + 1, last).search(/[{[]/);
    if (next < 0) return null;
    at += 1 + next;
    const text = line.slice(at, last);
    const found = parsed(text);
    if (found) return { text, ...found };
  }
  return null;
}

/** What a line of a log has, or an empty list. `isKnown`: some line of the log has what a provider said. */
function conversationsOfLine({ text, value }, isKnown) {
  const json = value === undefined ? jsonAtEnd(text) : { text, value };
  const found = json && !isMessage(json.value) ? conversationsIn(json.text, json.value) : [];
  // A bare list of anything is no conversation of a log.
  const own = found.filter(({ form, items }) => form !== 'list' || (items.length > 0 && items.every(isMessage)));
  if (own.length) return own;
  if (isKnown && rulesIn(text).length) return [{ form: 'error', text }];
  return !json && CUT_JSON.test(text) ? [{ form: 'foreign', what: NOT_JSON }] : [];
}

/** The conversations of a text that is no JSON as a whole: those of JSON Lines of messages, or of the lines of a log;
 *  null if there are none. */
function conversationsOfLines(original, name) {
  const lines = linesOf(original);
  const [first] = lines;
  const values = lines.filter(({ value }) => value !== undefined);
  // If the first line alone is not JSON, the text is a broken body of several lines.
  const isBroken = first.value === undefined && /^(?:\{|\[\s*(?:[{["]|$))/.test(first.text);
  if (isBroken) return null;
  if (values.length && values.every(({ value }) => isMessage(value))) {
    const bad = lines.find(({ value }) => value === undefined);
    if (!bad) return [messageLines(lines, name, original)];
    if (first !== bad) throw new Misuse(`${name} is neither JSON nor JSON Lines: line ${bad.number} is not JSON`);
  }
  const isKnown = rulesIn(original).length > 0;
  const found = lines.flatMap((line) => named(conversationsOfLine(line, isKnown), `${name}:${line.number}`));
  if (found.length) return found;
  const bad = lines.find(({ value }) => value === undefined);
  if (bad && first.value !== undefined && !isKnown)
    throw new Misuse(`${name} is neither JSON nor JSON Lines: line ${bad.number} is not JSON`);
  return bad
    ? null
    : lines.map(({ number }) => ({ form: 'foreign', name: `${name}:${number}`, what: NO_CONVERSATION }));
}

function messageLines(lines, name, original) {
  return {
    name,
    form: 'lines',
    original,
    text: `[${lines.map((line) => line.text).join(',')}]`,
    items: lines.map(({ value }) => value),
    lines: lines.map(({ number }) => number),
  };
}

const NO_CONVERSATION =
  'no body, batch line, log entry or message: there is no `messages`, `input` or `contents` in it';

/** Gives conversations their names: the file's, with the label of one of several. */
function named(found, name) {
  return found.map(({ label, ...one }) => ({
    ...one,
    name: found.length > 1 || label?.startsWith('[') === false ? `${name} ${label ?? ''}`.trimEnd() : name,
    original: one.text,
  }));
}

/** Reads a file: a list of {name, form, original, text, value, items, lines}. `form`: "body", "list" (a bare array),
 *  "lines" (JSON Lines of messages), "error" (what a provider answered) or "foreign" (`what` names it). `original` is
 *  the text of the file or of what an envelope contains, `text` the body or the array; `items` are the parsed messages
 *  of a list and of lines, `lines` their line numbers. */
export async function readConversations(file, stdin) {
  const name = file === '-' ? 'standard input' : file;
  const original = textOf(await bytesOf(file, stdin), name);
  const text = trimmedText(original);
  if (!text) throw new Misuse(`${name} is empty; pass a body, an array of messages, or one message per line`);
  const whole = parsed(text);
  if (whole && isMessage(whole.value)) return [messageLines([{ text, value: whole.value, number: 1 }], name, original)];
  if (whole) {
    const found = conversationsIn(text, whole.value);
    if (!found.length && rulesIn(text).length) return [{ name, form: 'error', original, text }];
    if (!found.length) return [{ name, form: 'body', original, text: original, value: whole.value }];
    // What is no envelope keeps the bytes of the file.
    if (found.length === 1 && found[0].text === text)
      return [{ ...found[0], name, original, text: found[0].form === 'body' ? original : text }];
    return named(found, name);
  }
  const found = conversationsOfLines(original, name);
  if (found) return found;
  if (rulesIn(original).length) return [{ name, form: 'error', original, text: original }];
  throw new Misuse(`${name} is not JSON: syntax error at ${syntaxErrorPosition(original)}`);
}

/** Reads the one conversation of a file, for commands that write one. */
export async function readConversation(file, stdin) {
  const [found, ...others] = await readConversations(file, stdin);
  if (others.length)
    throw new Misuse(
      `${file} has ${others.length + 1} conversations; \`rethread check\` takes them all, this command one`,
    );
  if (found.form === 'error')
    throw new Misuse(
      `${found.name} is an error of a provider, not a conversation; \`rethread explain\` and \`rethread check\` say what cures it`,
    );
  if (found.form === 'foreign') throw new Misuse(`${found.name}: ${found.what}`);
  return found;
}

/** Writes to a file, or to standard output. An existing file is replaced as a whole or not at all. */
export function write(text, out, stdout) {
  if (!out || out === '-') {
    stdout.write(text);
    return;
  }
  let target = out;
  let isFile = true;
  try {
    target = realpathSync(out);
    isFile = statSync(target).isFile();
  } catch {
    // the file does not exist yet
  }
  // A device or a pipe cannot be replaced by renaming.
  const draft = isFile ? path.join(path.dirname(target), `.${path.basename(target)}.${process.pid}`) : target;
  try {
    writeFileSync(draft, text);
    if (draft !== target) renameSync(draft, target);
  } catch (error) {
    if (draft !== target) rmSync(draft, { force: true });
    throw new Misuse(`${out} cannot be written: ${REASONS[error.code] ?? error.message}`);
  }
}
