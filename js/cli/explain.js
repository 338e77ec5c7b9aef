// The pages of rules, as `npx rethread explain` prints them.

import { readFileSync } from 'node:fs';
import { DIALECTS } from './dialect.js';
import { Misuse } from './misuse.js';

const HEADING = '## ';

/** The sections of a dialect's page, by code: docs/rules holds a page for each dialect. */
function sectionsOf(dialect) {
  const page = readFileSync(new URL(`../../docs/rules/${dialect}.md`, import.meta.url), 'utf8');
  const sections = page.split(`\n${HEADING}`).slice(1);
  return new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), `${HEADING}${section.trimEnd()}\n`]));
}

/** What a finding's code means: the provider's sentence, a broken body, the repaired one, and why. `dialect`: of that one alone. */
export function explanation(code, dialect) {
  const pages = (dialect ? [dialect] : Object.keys(DIALECTS)).map((name) => [name, sectionsOf(name)]);
  const known = [...new Set(pages.flatMap(([, sections]) => [...sections.keys()]))].sort();
  const found = pages.filter(([, sections]) => sections.has(code));
  if (!found.length) throw new Misuse(`there is no rule "${code}"${dialect ? ` of ${dialect}` : ''}: the rules are ${known.join(', ')}`);
  return found.map(([name, sections]) => `# ${name}\n\n${sections.get(code)}`).join('\n');
}
