// Findings as a list: what was done and why, with the rule of each.

import { el, visible } from './dom.js';
import { loadRules, renderSection, ruleAddress, sectionOf } from './rules.js';

const SEVERITIES = { error: 'error', warning: 'warning', info: 'note' };
const STALE = ['stale', 'stale_default', 'future'];
const REPAIRS = ['synthesized', 'moved', 'renamed', 'rewritten', 'merged'];

/** What became of what a finding is about, in a word. */
export function outcomeOf({ code, action }) {
  if (STALE.includes(code)) return 'stale';
  if (code.startsWith('reasoning_')) return code === 'reasoning_unbound' ? 'unbound' : 'reasoning';
  if (action === 'dropped') return 'dropped';
  if (REPAIRS.includes(action)) return 'repaired';
  return 'kept';
}

/** How many findings have each outcome: `[["repaired", 2], …]`. */
export function outcomes(findings) {
  const counts = new Map();
  for (const finding of findings) {
    const outcome = outcomeOf(finding);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  return [...counts];
}

/** The rule of a code, which is read when it is opened. */
export function ruleNode(code, dialect) {
  const body = el('div.rule');
  const node = el('details.rule-details', {}, el('summary', {}, 'Rule ', el('code', {}, code)), body);
  node.addEventListener('toggle', async () => {
    if (!node.open || body.childNodes.length) return;
    try {
      const rules = await loadRules();
      const section = sectionOf(rules, code, dialect);
      const href = ruleAddress(rules, code, dialect);
      body.replaceChildren(
        ...(section ? renderSection(section) : [el('p', {}, 'No page has this code.')]),
        el('p', {}, el('a', { href, target: '_blank', rel: 'noopener' }, href.replace(/^.*docs/, 'docs'))),
      );
    } catch (error) {
      body.replaceChildren(el('p.failed', {}, error.message));
    }
  });
  return node;
}

/** A list of findings. `dialect`: that of the body. */
export function findingList(findings, dialect) {
  return el(
    'ul.findings',
    {},
    ...findings.map((finding) => {
      const { severity, code, path, callId, messageId, message, changedBy } = finding;
      const place = path ?? (callId ? `call ${callId}` : messageId ? `message ${messageId}` : '');
      const node = el(
        'li.finding',
        {},
        el('span.severity', {}, SEVERITIES[severity] ?? severity),
        el('span.outcome', {}, outcomeOf(finding)),
        place ? el('code.place', {}, visible(place)) : '',
        el('p', {}, visible(message), changedBy ? ` (changed by: ${changedBy})` : ''),
        ruleNode(code, dialect),
      );
      node.dataset.severity = severity;
      node.dataset.code = code;
      return node;
    }),
  );
}
