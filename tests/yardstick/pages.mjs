// The examples of docs/rules and of tests/bodies, as they are written there.

import { readFileSync } from 'node:fs';
import { DIALECTS as ALL } from '../stand-in/dialects.mjs';

/** Those that other libraries were run with: not the entries of Mistral's conversations, nor Google's steps. */
const { 'mistral-conversations': _, 'gemini-interactions': __, ...DIALECTS } = ALL;
export { DIALECTS };

const root = new URL('../../', import.meta.url);
const BEGINS = new Set(['broken', 'refused', 'fragile', 'sent']);
const ENDS = new Set(['repaired', 'answer', 'healed']);

const unescaped = (text) => text.replace(/\s+/g, ' ').trim();

/** The examples of the page of a dialect: `{ rule, title, says, source, kind, blocks }`. `kind` is the word after
 *  the fence of the first block, and `blocks` has all of them by their words. */
export function pageExamples(dialect) {
  const lines = readFileSync(new URL(`docs/rules/${dialect}.md`, root), 'utf8').split('\n');
  const examples = [];
  let section = {};
  let block = null;
  for (const line of lines) {
    if (block) {
      if (line !== '```') {
        block.lines.push(line);
        continue;
      }
      const body = JSON.parse(block.lines.join('\n'));
      if (BEGINS.has(block.word)) examples.push({ ...section, kind: block.word, blocks: { [block.word]: body } });
      else if (ENDS.has(block.word)) examples.at(-1).blocks[block.word] = body;
      else throw new Error(`docs/rules/${dialect}.md: no block is called ${block.word}`);
      block = null;
    } else if (line.startsWith('## ')) section = { rule: line.slice(3), title: null };
    else if (line.startsWith('### ')) section = { rule: section.rule, title: line.slice(4) };
    else if (line.startsWith('> ')) section.says = unescaped(line.slice(2));
    else if (line.startsWith('Source: ')) section.source = unescaped(line.slice(8));
    else if (line.startsWith('```json ')) block = { word: line.slice(8), lines: [] };
  }
  return examples;
}

/** The bodies of November 2026: `{ name, source, body, found?, repaired?, refused?, warned? }`. */
export const bodiesOfToday = (dialect) =>
  JSON.parse(readFileSync(new URL(`tests/bodies/${dialect}.json`, root), 'utf8'));
