// What is read and written: files, standard input, and the three forms in which a conversation lies in them.
//
// Text goes through as it was written: only a copy is parsed, to see what it is.

import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { RethreadError, validate } from '../entry/node.js';
import { LISTS } from './dialect.js';
import { Misuse } from './misuse.js';

const REASONS = { ENOENT: 'there is no such file', EISDIR: 'it is a folder', EACCES: 'reading it is not allowed' };

async function bytesOf(file, stdin) {
  if (file === '-') {
    if (stdin.isTTY) throw new Misuse('`-` reads standard input, and nothing is piped into it');
    const pieces = [];
    for await (const piece of stdin) pieces.push(piece);
    return Buffer.concat(pieces);
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
    throw new Misuse(`${name} is not UTF-8 text; a body and a file of messages are JSON in UTF-8`);
  }
}

const bare = (text) => text.replace(/^\ufeff/, '').trim();

const parsed = (text) => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

/** Where a text stops being JSON, as line and column. */
function whereItStops(text) {
  let at = null;
  try {
    const [{ message }] = validate(text, 'openai-chat');
    at = /at byte (\d+)/.exec(message)?.[1];
  } catch (error) {
    if (!(error instanceof RethreadError)) throw error;
  }
  if (at === null || at === undefined) return 'somewhere';
  const before = Buffer.from(text).subarray(0, Number(at)).toString('utf8');
  const line = before.split('\n').length;
  return `at line ${line}, column ${before.length - before.lastIndexOf('\n')}`;
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isMessage = (value) => isObject(value) && !LISTS.some((list) => Object.hasOwn(value, list)) && (typeof value.role === 'string' || typeof value.type === 'string');

/** The messages of JSON Lines; null when the text is none. */
function linesOf(text, name) {
  const lines = text.replace(/^\ufeff/, '').split('\n').map((line, i) => ({ text: line.trim(), number: i + 1 })).filter((line) => line.text);
  const read = lines.map((line) => ({ ...line, ...parsed(line.text) }));
  // One line that is no JSON by itself at the very beginning: a body over many lines, and broken.
  if (read.length < 2 || !isObject(read[0].value)) return null;
  const bad = read.find((line) => !('value' in line));
  if (bad) throw new Misuse(`${name} is not JSON, and as JSON Lines it stops at line ${bad.number}, which is no JSON`);
  const other = read.find((line) => !isMessage(line.value));
  if (other) throw new Misuse(`${name}: line ${other.number} is no message; JSON Lines hold one message a line. Give a whole body as a file of its own`);
  return read;
}

/** Reads a file: {name, form, given, text, value, items, lines}. `form`: "body", "list" (a bare array) or "lines" (JSON Lines);
 *  `given` is the text as it came, `text` the body or the array; `items` are the parsed messages of the last two forms, `lines`
 *  the line of each. */
export async function readConversation(file, stdin) {
  const name = file === '-' ? 'standard input' : file;
  const given = textOf(await bytesOf(file, stdin), name);
  const text = bare(given);
  if (!text) throw new Misuse(`${name} is empty; give a body, an array of messages, or a message a line`);
  const whole = parsed(text);
  if (whole && isMessage(whole.value)) {
    return { name, form: 'lines', given, text: `[${text}]`, items: [whole.value], lines: [1] };
  }
  if (whole && Array.isArray(whole.value)) return { name, form: 'list', given, text, items: whole.value };
  if (whole) return { name, form: 'body', given, text: given, value: whole.value };
  const lines = linesOf(given, name);
  if (!lines) throw new Misuse(`${name} is not JSON: it stops being it ${whereItStops(given)}`);
  return {
    name, form: 'lines', given, text: `[${lines.map((line) => line.text).join(',')}]`, items: lines.map(({ value }) => value), lines: lines.map(({ number }) => number),
  };
}

/** What stands between the commas of an array or an object, as it was written. The text is JSON. */
function between(text) {
  const pieces = [];
  let depth = 0;
  let start = 1;
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (c === '"') {
      at += 1;
      while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    } else if (c === '[' || c === '{') depth += 1;
    else if (c === ']' || c === '}') depth -= 1;
    if ((c === ',' && depth === 1) || depth === 0) {
      const piece = text.slice(start, at).trim();
      if (piece) pieces.push(piece);
      start = at + 1;
    }
    if (depth === 0) break;
  }
  return pieces;
}

/** The texts of an array's items. */
export const itemsOf = (array) => between(array);

/** The text of a member's value. The key is spelled without escapes. */
export function memberOf(object, key) {
  const head = `"${key}"`;
  const member = between(object).find((piece) => piece.startsWith(head) && piece.slice(head.length).trimStart().startsWith(':'));
  return member?.slice(head.length).trimStart().slice(1).trim();
}

/** Writes to a file, or to standard output. A file that is there is replaced as a whole or not at all. */
export function write(text, out, stdout) {
  if (!out || out === '-') {
    stdout.write(text);
    return;
  }
  let place = out;
  let plain = true;
  try {
    place = realpathSync(out);
    plain = statSync(place).isFile();
  } catch {
    // not there yet
  }
  const draft = plain ? path.join(path.dirname(place), `.${path.basename(place)}.${process.pid}`) : place;
  try {
    writeFileSync(draft, text);
    if (draft !== place) renameSync(draft, place);
  } catch (error) {
    if (draft !== place) rmSync(draft, { force: true });
    throw new Misuse(`${out} cannot be written: ${REASONS[error.code] ?? error.message}`);
  }
}
