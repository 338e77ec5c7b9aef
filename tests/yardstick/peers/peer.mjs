// What the programs of the libraries in JavaScript share. Each reads the vectors that are sent to the stand-in at
// `url`, one lane each, and prints a line for each: `yardstick { id }`, with `threw` or `cannot`.

import { readFileSync } from 'node:fs';

/** A vector that the library's types, or its providers, cannot express. */
export class Cannot extends Error {}
export const cannot = (why) => {
  throw new Cannot(why);
};

/** The first line of an error and its name. */
const said = (error) => `${error?.name ?? 'Error'}: ${String(error?.message ?? error).split('\n')[0]}`.slice(0, 300);

/** The name of the tool that a call id belongs to. */
export function toolNames({ messages }) {
  const names = new Map();
  for (const { parts } of messages)
    for (const part of parts) if (part.type === 'call' || part.name) names.set(part.id, part.name);
  return (id) => names.get(id) ?? 'get_weather';
}

export const textOf = (parts) =>
  parts
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join('');

/** Runs `send(vector, lane)` on all vectors, where `lane` is the address of the vector's own lane. A library's
 *  `execute` calls `ran`. */
export async function runPeer(send) {
  const { YARDSTICK_URL: url, YARDSTICK_VECTORS: file } = process.env;
  const vectors = JSON.parse(readFileSync(file, 'utf8'));
  // What a library prints is not part of the report.
  for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = () => {};
  for (const { lane, vector } of vectors) {
    const line = { id: vector.id };
    let tools = 0;
    try {
      if (!vector.given.messages) cannot(`only a body can say it: ${vector.given.onlyAsBody}`);
      if (vector.given.thinking && !vector.given.thinking.type) cannot('its types want the kind of thinking');
      await send(vector, { lane: `${url}/lane/${lane}`, ran: () => (tools += 1) });
    } catch (error) {
      if (error instanceof Cannot) line.cannot = error.message;
      else line.threw = said(error);
    }
    if (tools) line.tools = tools;
    process.stdout.write(`\nyardstick ${JSON.stringify(line)}\n`);
  }
}
