// The pages of rules: `npx rethread explain` prints them, and findings refer to them.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS } from '../dialects.js';
import { refusedRule } from './formats.js';
import { Misuse } from './misuse.js';
import { firstOfEach, RulePages } from './rule-search.js';

export { cureOf } from './rule-search.js';

/** The page of the findings that are about no rule of a provider. */
const FINDINGS = 'findings';
const RULES = new URL('../../docs/rules', import.meta.url);
const pageOf = (dialect) => new URL(`../../docs/rules/${dialect}.md`, import.meta.url);

const pages = new RulePages(DIALECTS, (name) => readFileSync(pageOf(name), 'utf8'));
const sectionsOf = (name) => pages.sectionsOf(name);

/** A page in the installed package, or their folder, as a path. */
function pathOf(url) {
  const file = fileURLToPath(url);
  const relative = path.relative(process.cwd(), file);
  return relative.startsWith('..') ? file : relative;
}

/** Lines that point to the rules behind these findings: a command for each code that has a rule, and the page in the
 *  package. */
export function seeAlso(findings, dialect) {
  const sections = sectionsOf(dialect);
  const codes = [...new Set(findings.map(({ code }) => code))].filter((code) => sections.has(code));
  if (!codes.length) return [];
  return [
    ...codes.map((code) => `see: npx rethread explain ${code} --dialect ${dialect}`),
    `rules: ${pathOf(pageOf(dialect))}`,
  ];
}

/** The rules by which `heal` repairs what a provider said, as `rulesIn` returns them. */
function healedRules(text, dialect) {
  return (dialect ? [dialect] : DIALECTS).flatMap((name) => {
    const code = refusedRule(text, name);
    const section = code && sectionsOf(name).get(code);
    return section ? [{ dialect: name, code, section }] : [];
  });
}

/** The rules that a provider's sentence, error or log line is about: [{dialect, code, section}], the best ones only. */
export function rulesIn(text, dialect) {
  const healed = healedRules(text, dialect);
  if (healed.length) return firstOfEach(healed);
  return pages.rulesIn(text, dialect);
}

const shortened = (asked) => (asked.length > 60 ? `${asked.slice(0, 60)}…` : asked).replace(/\s+/g, ' ');

/** Returns the text of a rule from the page of each dialect that has it, or of `dialect` alone: by its code, or by what
 *  a provider said; or of a finding that is about no rule. */
export function explanation(asked, dialect) {
  const sections = (dialect ? [dialect] : DIALECTS).map((name) => [name, sectionsOf(name)]);
  const finding = sectionsOf(FINDINGS).get(asked);
  if (finding) return `# ${FINDINGS}\n\n${finding}`;
  const named = sections
    .filter(([, rules]) => rules.has(asked))
    .map(([name, rules]) => ({ dialect: name, section: rules.get(asked) }));
  const found = named.length ? named : rulesIn(asked, dialect);
  if (!found.length) {
    const isCode = /^[a-z_]+$/.test(asked);
    if (!isCode)
      throw new Misuse(
        `this sentence is not known: "${shortened(asked)}"${dialect ? ` of ${dialect}` : ''}; pass the whole message, or the JSON of the error; the rules are in ${pathOf(dialect ? pageOf(dialect) : RULES)}`,
      );
    const known = [...new Set(sections.flatMap(([, rules]) => [...rules.keys()]))].sort();
    throw new Misuse(
      `there is no rule "${shortened(asked)}"${dialect ? ` of ${dialect}` : ''}; the rules are ${known.join(', ')}; or pass the provider's sentence`,
    );
  }
  return found.map((rule) => `# ${rule.dialect}\n\n${rule.section}`).join('\n');
}
