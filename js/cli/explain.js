// The pages of rules: `npx rethread explain` prints them, and findings refer to them.

import { readFileSync } from 'node:fs';
import { DIALECTS } from '../dialects.js';
import { Misuse } from './misuse.js';

const HEADING = '## ';
const PAGES = 'https://github.com/rethread/rethread/blob/main/docs/rules';

/** The sections of a dialect's page in docs/rules, by code. */
function sectionsOf(dialect) {
  const page = readFileSync(new URL(`../../docs/rules/${dialect}.md`, import.meta.url), 'utf8');
  const sections = page.split(`\n${HEADING}`).slice(1);
  return new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), `${HEADING}${section.trimEnd()}\n`]));
}

/** Lines that point to the rules behind these findings: a command for each code that has a rule, and the address of the page. */
export function seeAlso(findings, dialect) {
  const sections = sectionsOf(dialect);
  const codes = [...new Set(findings.map(({ code }) => code))].filter((code) => sections.has(code));
  if (!codes.length) return [];
  return [...codes.map((code) => `see: npx rethread explain ${code} --dialect ${dialect}`), `rules: ${PAGES}/${dialect}.md`];
}

/** Returns the text of a rule from the page of each dialect that has it, or of `dialect` alone. */
export function explanation(code, dialect) {
  const pages = (dialect ? [dialect] : DIALECTS).map((name) => [name, sectionsOf(name)]);
  const known = [...new Set(pages.flatMap(([, sections]) => [...sections.keys()]))].sort();
  const found = pages.filter(([, sections]) => sections.has(code));
  if (!found.length) throw new Misuse(`there is no rule "${code}"${dialect ? ` of ${dialect}` : ''}; the rules are ${known.join(', ')}`);
  return found.map(([name, sections]) => `# ${name}\n\n${sections.get(code)}`).join('\n');
}
