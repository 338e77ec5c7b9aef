// Finds the rule that a provider's sentence is about in the pages of rules. The pages are passed in as text: the
// command line reads them from the package, and the demo fetches them.

const HEADING = '## ';
/** The shortest part of a provider's sentence that is looked for. */
const MIN_PART = 8;
/** A shorter text is a word of many sentences, not a part of one. */
const MIN_WORDS = 3;
/** The shortest sentence that is looked for by itself. */
const MIN_SENTENCE = 24;

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
export const firstOfEach = (rules) =>
  rules.filter((rule, at) => rules.findIndex(({ code }) => code === rule.code) === at);

/** The line of a section that says what cures the error, or null. */
export const cureOf = (section) => /^Cure: (.*)$/m.exec(section)?.[1] ?? null;

/** The pages of rules, of which each is read when it is needed. */
export class RulePages {
  #dialects;
  #textOf;
  #sections = new Map();
  #rules = new Map();

  /** `textOf(name)` returns the text of a page. */
  constructor(dialects, textOf) {
    this.#dialects = dialects;
    this.#textOf = textOf;
  }

  /** The sections of a page, by code. */
  sectionsOf(name) {
    if (!this.#sections.has(name)) {
      const sections = this.#textOf(name).split(`\n${HEADING}`).slice(1);
      this.#sections.set(
        name,
        new Map(
          sections.map((section) => [section.slice(0, section.indexOf('\n')), `${HEADING}${section.trimEnd()}\n`]),
        ),
      );
    }
    return this.#sections.get(name);
  }

  /** The rules of a dialect: [{dialect, code, section, name, sentences}], with `name` to find the code in a text. */
  #rulesOf(dialect) {
    if (!this.#rules.has(dialect)) {
      this.#rules.set(
        dialect,
        [...this.sectionsOf(dialect)].map(([code, section]) => ({
          dialect,
          code,
          section,
          name: code.includes('_') ? new RegExp(`(?<![a-z_])${code}(?![a-z_])`) : null,
          sentences: sentencesOf(section).map(comparable),
        })),
      );
    }
    return this.#rules.get(dialect);
  }

  /** The rules that a provider's sentence, error or log line is about: [{dialect, code, section}], the best ones only.
   *  Without a dialect, those of all. */
  rulesIn(text, dialect) {
    const given = plain(text).replace(/\.$/, '');
    const bare = withoutIds(given);
    const shorter = bare.split(' ').length >= MIN_WORDS && bare.length >= MIN_PART ? bare : null;
    let best = 0;
    let found = [];
    for (const { name, sentences, ...rule } of (dialect ? [dialect] : this.#dialects).flatMap((one) =>
      this.#rulesOf(one),
    )) {
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
}
