// docs/rules/sentences.md: every sentence that the pages of rules quote, with its rule.
//
//   node .ci/sentences.mjs     writes the page

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS } from '../js/dialects.js';
import { headingsOf, prose } from './links.mjs';
import { read, root } from './shell.mjs';

const PAGE = 'docs/rules/sentences.md';

const INTRODUCTION = `# What a provider says

Each sentence that the pages of [rules](README.md) quote, and the rule that it is about: why a provider refuses the body, an example, and what
\`repair\` or \`heal\` makes of it. Search this page for the words of your error without its ids, numbers and paths.
\`npx rethread explain "what the provider said"\` finds the rule of a whole error, and of a line of a log.
`;

/** The sentences of a line: a quotation, or what "Also: …" has in quotation marks. */
function quoted(text) {
  if (text.startsWith('> ')) return [text.slice(2)];
  return text.startsWith('Also: ') ? [...text.matchAll(/"([^"]+)"/g)].map((match) => match[1]) : [];
}

/** A map from each sentence of a page to its rules: [{code, id}], the id of the nearest heading. */
function sentencesOf(page) {
  const headings = headingsOf(page);
  const codes = new Set(page.match(/^## .+$/gm).map((heading) => heading.slice(3)));
  const found = new Map();
  for (const { line, text } of prose(page)) {
    const above = headings.filter((heading) => heading.line < line);
    const code = above.findLast((heading) => codes.has(heading.text))?.text;
    for (const sentence of quoted(text)) {
      const rules = found.get(sentence) ?? [];
      if (code && !rules.some((rule) => rule.code === code)) rules.push({ code, id: above.at(-1).id });
      found.set(sentence, rules);
    }
  }
  return found;
}

/** Text as code in a cell of a table, so that it stays as it is, and is found in the file as well. */
function cell(text) {
  const [fence, space] = text.includes('`') ? ['``', ' '] : ['`', ''];
  return `${fence}${space}${text.replaceAll('|', '\\|')}${space}${fence}`;
}

export function sentencePage() {
  const tables = DIALECTS.map((dialect) => {
    const page = read(`docs/rules/${dialect}.md`);
    const title = headingsOf(page)[0].text;
    const rows = [...sentencesOf(page)].map(([sentence, rules]) => {
      const links = rules.map(({ code, id }) => `[\`${code}\`](${dialect}.md#${id})`);
      return `| ${links.join(', ')} | ${cell(sentence)} |`;
    });
    return `## ${title}\n\n| rule | the provider says |\n|---|---|\n${rows.join('\n')}\n`;
  });
  return [INTRODUCTION, ...tables].join('\n');
}

/** The page has every sentence of the pages of rules. */
export function sentences() {
  return read(PAGE) === sentencePage() ? [] : [`${PAGE}: run \`node .ci/sentences.mjs\``];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(path.join(root, PAGE), sentencePage());
