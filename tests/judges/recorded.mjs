// Recorded streams and exchanges, as the judges take them.

import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const corpora = process.env.RETHREAD_DATA ?? fileURLToPath(new URL('../corpora', import.meta.url));

/** The event that begins a response, for a file that holds several. */
const BEGINS = { anthropic: 'message_start', 'openai-responses': 'response.created' };

const framed = (lines) => lines.map((line) => `data: ${line}\n\n`).join('');

/** Events get the name that the wire has beside the data, where a source left the framing out. */
function named(lines, dialect) {
  if (!BEGINS[dialect])
    return framed(lines) + (dialect === 'openai-chat' || dialect === 'mistral' ? 'data: [DONE]\n\n' : '');
  return lines.map((line) => `event: ${JSON.parse(line).type}\ndata: ${line}\n\n`).join('');
}

const dataOf = (text) =>
  text
    .split(/\r\n|\r|\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .filter(Boolean);

function split(lines, begins) {
  const starts = lines.flatMap((line, at) => (JSON.parse(line).type === begins ? [at] : []));
  return starts.map((start, at) => lines.slice(start, starts[at + 1]));
}

/** Every recorded response of a dialect: `{ name, entry, bytes }`. */
export function streams(dialect) {
  const folder = path.join(corpora, 'streams', dialect);
  return JSON.parse(readFileSync(path.join(folder, 'index.json'), 'utf8')).flatMap((entry) => {
    const text = readFileSync(path.join(folder, entry.file), 'utf8');
    const unframed = entry.file.endsWith('.jsonl');
    const lines = unframed ? text.split('\n').filter(Boolean) : dataOf(text);
    const responses = (entry.responses_in_file ?? 1) > 1 ? split(lines, BEGINS[dialect]) : [lines];
    return responses.map((own, at) => ({
      name: responses.length > 1 ? `${entry.file} #${at}` : entry.file,
      entry,
      bytes: new TextEncoder().encode(unframed || responses.length > 1 ? named(own, dialect) : text),
    }));
  });
}

/** Every recorded request of a dialect: `{ name, body, status }`. */
export function requests(dialect) {
  const folder = path.join(corpora, 'exchanges', dialect);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json') && file !== 'index.json')
    .sort()
    .flatMap((file) => {
      const { steps } = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
      return steps.map((step, at) => ({ name: `${file} step ${at}`, body: step.request, status: step.status }));
    });
}
