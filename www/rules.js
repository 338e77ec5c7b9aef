// The pages of docs/rules as text, and their sections as elements. The search is that of `npx rethread explain`.

import { DIALECTS } from '/node_modules/rethread/js/dialects.js';
import { RulePages } from '/node_modules/rethread/js/cli/rule-search.js';
import { el } from './dom.js';

export { DIALECTS };

const FOLDER = '/node_modules/rethread/docs/rules/';
const FINDINGS = 'findings';

const pages = new Map();

/** The text of a page, which is fetched once. */
function pageOf(name) {
  if (!pages.has(name)) {
    const page = fetch(`${FOLDER}${name}.md`).then((response) => {
      if (!response.ok) throw new Error(`${name}.md cannot be read (status ${response.status})`);
      return response.text();
    });
    // A later attempt may succeed.
    page.catch(() => pages.delete(name));
    pages.set(name, page);
  }
  return pages.get(name);
}

let loading = null;

/** All pages, for `rulesIn` and `sectionOf`. */
export function loadRules() {
  loading ??= Promise.all([...DIALECTS, FINDINGS].map(async (name) => [name, await pageOf(name)]))
    .then((all) => {
      const texts = new Map(all);
      return new RulePages(DIALECTS, (name) => texts.get(name));
    })
    .catch((error) => {
      loading = null;
      throw error;
    });
  return loading;
}

/** The address of the page that a code is on. */
export const ruleAddress = (rules, code, dialect) =>
  `${FOLDER}${dialect && rules.sectionsOf(dialect).has(code) ? dialect : FINDINGS}.md`;

/** The section of a code: that of the dialect, or of the findings that are about no rule; else undefined. */
export const sectionOf = (rules, code, dialect) =>
  (dialect && rules.sectionsOf(dialect).get(code)) ?? rules.sectionsOf(FINDINGS).get(code);

/** A line of Markdown: what is between backquotes is code. */
export const inline = (text) =>
  text
    .split(/`([^`]+)`/)
    .map((part, at) => (at % 2 ? el('code', {}, part) : part.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')));

/** The elements of a section, without its heading. */
export function renderSection(section) {
  const [, ...rest] = section.trim().split('\n');
  const blocks = rest
    .join('\n')
    .split(/^(```[\s\S]*?^```)$/m)
    .flatMap((block, at) => (at % 2 ? [block] : block.split(/\n\s*\n/)))
    .map((block) => block.trim())
    .filter(Boolean);
  return blocks.map((block) => {
    if (block.startsWith('```')) {
      const [head, ...lines] = block.split('\n');
      return el(
        'figure',
        {},
        el('figcaption', {}, head.replace(/^```\w*\s*/, '') || 'example'),
        el('pre', { tabIndex: 0 }, lines.slice(0, -1).join('\n')),
      );
    }
    if (block.startsWith('>')) return el('blockquote', {}, ...inline(block.replace(/^> ?/gm, '')));
    return el('p', {}, ...inline(block));
  });
}
