// Reads and writes conversations: files and standard input, in three forms.
//
// Text is passed on as it is written; it is parsed only to recognize its form.

import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { RethreadError, validate } from '../entry/formats-node.js';
import { CONVERSATION_MEMBERS } from '../dialects.js';
import { Misuse } from './misuse.js';

const REASONS = { ENOENT: 'no such file', EISDIR: 'it is a folder', EACCES: 'permission denied' };

async function bytesOf(file, stdin) {
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

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isMessage = (value) => isObject(value) && !Object.values(CONVERSATION_MEMBERS).some((member) => Object.hasOwn(value, member)) && (typeof value.role === 'string' || typeof value.type === 'string');

/** The messages of JSON Lines; null if the text is not JSON Lines. */
function linesOf(text, name) {
  const lines = text.replace(/^\ufeff/, '').split('\n').map((line, i) => ({ text: line.trim(), number: i + 1 })).filter((line) => line.text);
  const read = lines.map((line) => ({ ...line, ...parsed(line.text) }));
  // If the first line alone is not JSON, the text is a broken body of several lines.
  if (read.length < 2 || !isObject(read[0].value)) return null;
  const bad = read.find((line) => !('value' in line));
  if (bad) throw new Misuse(`${name} is neither JSON nor JSON Lines: line ${bad.number} is not JSON`);
  const other = read.find((line) => !isMessage(line.value));
  if (other) throw new Misuse(`${name}: line ${other.number} is not a message; JSON Lines have one message per line. Pass a whole body as a separate file`);
  return read;
}

/** Reads a file: {name, form, original, text, value, items, lines}. `form`: "body", "list" (a bare array) or "lines" (JSON Lines);
 *  `original` is the text of the file, `text` the body or the array; `items` are the parsed messages of the last two forms, `lines`
 *  their line numbers. */
export async function readConversation(file, stdin) {
  const name = file === '-' ? 'standard input' : file;
  const original = textOf(await bytesOf(file, stdin), name);
  const text = trimmedText(original);
  if (!text) throw new Misuse(`${name} is empty; pass a body, an array of messages, or one message per line`);
  const whole = parsed(text);
  if (whole && isMessage(whole.value)) {
    return { name, form: 'lines', original, text: `[${text}]`, items: [whole.value], lines: [1] };
  }
  if (whole && Array.isArray(whole.value)) return { name, form: 'list', original, text, items: whole.value };
  if (whole) return { name, form: 'body', original, text: original, value: whole.value };
  const lines = linesOf(original, name);
  if (!lines) throw new Misuse(`${name} is not JSON: syntax error at ${syntaxErrorPosition(original)}`);
  return {
    name, form: 'lines', original, text: `[${lines.map((line) => line.text).join(',')}]`, items: lines.map(({ value }) => value), lines: lines.map(({ number }) => number),
  };
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
