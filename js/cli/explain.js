// The pages of rules: `npx rethread explain` prints them, and findings refer to them.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS } from '../dialects.js';
import { refusedRule } from './formats.js';
import { Misuse } from './misuse.js';

const HEADING = '## ';
/** The page of the findings that are about no rule of a provider. */
const FINDINGS = 'findings';
/** The shortest part of a provider's sentence that is looked for. */
const MIN_PART = 8;
/** A shorter text is a word of many sentences, not a part of one. */
const MIN_WORDS = 3;
/** The shortest sentence that is looked for by itself. */
const MIN_SENTENCE = 24;

const pageOf = (dialect) => new URL(`../../docs/rules/${dialect}.md`, import.meta.url);

const pages = new Map();

/** The sections of a page in docs/rules, by code. */
function sectionsOf(name) {
  if (!pages.has(name)) pages.set(name, readSections(name));
  return pages.get(name);
}

function readSections(dialect) {
  const page = readFileSync(pageOf(dialect), 'utf8');
  const sections = page.split(`\n${HEADING}`).slice(1);
  return new Map(
    sections.map((section) => [section.slice(0, section.indexOf('\n')), `${HEADING}${section.trimEnd()}\n`]),
  );
}

/** The page of a dialect in the installed package, as a path. */
function pagePath(dialect) {
  const file = fileURLToPath(pageOf(dialect));
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
    `rules: ${pagePath(dialect)}`,
  ];
}

/** A text as it can be compared: gateways escape and replace quotation marks, and the ids of a conversation differ from
 *  the page's. */
function plain(text) {
  const unescaped = text
    .replace(/\\+[nrt]/g, ' ')
    .replace(/[\\"'`]/g, '')
    .toLowerCase();
  return unescaped.replace(/\s+/g, ' ').trim();
}

/** The text without words that have digits, which are ids and places, and without what stands for them. */
const withoutIds = (text) =>
  text
    .replace(/\S*(?:\d|…|\.\.\.)\S*/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

/** The provider's sentences and codes in a section: its quotation, and what is quoted in the paragraphs about its
 *  source. */
function sentencesOf(section) {
  const prose = section.replace(/^```[\s\S]*?^```$/gm, '');
  const quotations = [...prose.matchAll(/^> (.*)$/gm)].map(([, sentence]) => sentence);
  const sources = prose
    .split('\n')
    .filter((line) => /^(?:Source|Also)\b/.test(line))
    .join('\n');
  const all = [...quotations, ...[...sources.matchAll(/"((?:[^"\n]|\\")+)"/g)].map(([, sentence]) => sentence)];
  // Clients shorten errors: one sentence of several is enough.
  return [
    ...all,
    ...all.flatMap((text) => text.split(/\.(?: |$)/).filter((sentence) => sentence.length >= MIN_SENTENCE)),
  ];
}

/** What is compared of a provider's sentence: its parts between ids, and the whole without ids. */
function comparable(sentence) {
  const text = plain(sentence);
  const parts = text
    .split(/\S*(?:\d|…|\.\.\.)\S*/)
    .map((part) => part.trim())
    .filter((part) => part.length >= MIN_PART);
  return { parts, length: parts.join('').length, whole: withoutIds(text) };
}

const readRules = new Map();

/** The rules of a dialect: [{dialect, code, section, name, sentences}], with `name` to find the code in a text. */
function rulesOf(dialect) {
  if (!readRules.has(dialect)) {
    readRules.set(
      dialect,
      [...sectionsOf(dialect)].map(([code, section]) => ({
        dialect,
        code,
        section,
        name: code.includes('_') ? new RegExp(`(?<![a-z_])${code}(?![a-z_])`) : null,
        sentences: sentencesOf(section).map(comparable),
      })),
    );
  }
  return readRules.get(dialect);
}

/** How well a text contains a sentence, or is a part of it: the number of equal characters, or 0. `shorter`: the text
 *  without ids, if it may be a part. */
function similarity({ parts, length, whole }, text, shorter) {
  let at = 0;
  const isContained =
    parts.length > 0 &&
    parts.every((part) => {
      const found = text.indexOf(part, at);
      at = found + part.length;
      return found >= 0;
    });
  // A whole sentence says more than a part of one.
  if (isContained) return length + 0.5;
  return shorter && whole.includes(shorter) ? shorter.length : 0;
}

/** The rules with another code than those before them: Bedrock passes the errors of its models on, and one entry about
 *  a sentence is enough. */
const firstOfEach = (rules) => rules.filter((rule, at) => rules.findIndex(({ code }) => code === rule.code) === at);

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
  const given = plain(text).replace(/\.$/, '');
  const bare = withoutIds(given);
  const shorter = bare.split(' ').length >= MIN_WORDS && bare.length >= MIN_PART ? bare : null;
  let best = 0;
  let found = [];
  for (const { name, sentences, ...rule } of (dialect ? [dialect] : DIALECTS).flatMap(rulesOf)) {
    const score = Math.max(
      name?.test(given) ? rule.code.length : 0,
      ...sentences.map((sentence) => similarity(sentence, given, shorter)),
    );
    if (score > best) found = [];
    if (score >= Math.max(best, 1)) found.push(rule);
    best = Math.max(best, score);
  }
  // Several rules may quote one sentence: those that begin with its cure are about the error as such.
  const cured = found.filter(({ section }) => cureOf(section));
  return firstOfEach(cured.length ? cured : found);
}

/** The line of a section that says what cures the error, or null. */
export const cureOf = (section) => /^Cure: (.*)$/m.exec(section)?.[1] ?? null;

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
        `this sentence is not known: "${shortened(asked)}"${dialect ? ` of ${dialect}` : ''}; docs/rules in the package has what is`,
      );
    const known = [...new Set(sections.flatMap(([, rules]) => [...rules.keys()]))].sort();
    throw new Misuse(
      `there is no rule "${shortened(asked)}"${dialect ? ` of ${dialect}` : ''}; the rules are ${known.join(', ')}; or pass the provider's sentence`,
    );
  }
  return found.map((rule) => `# ${rule.dialect}\n\n${rule.section}`).join('\n');
}
