// The timeline: the rounds of each turn with their model calls and tools, and the rows of the audit table.

import { clip, counted, dateOf, duration, el, failure, setText, throttled } from './dom.js';

const WORDS = { ok: 'done', error: 'failed', pending: 'open' };
const AUDIT_ROWS = 50;

const textOf = ({ parts }) =>
  parts
    .map((part) => part.text ?? '')
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
const callsOf = ({ parts }) => parts.filter(({ type }) => type === 'tool').map(({ call }) => call);

/** The turns of a view: `{ turn, question, answers }`. A run that failed or was stopped has the number of the turn before
 *  it until it is resumed: it is a turn of its own. */
export function turnsOf(messages) {
  const turns = new Map();
  const runs = new Map();
  for (const message of messages) {
    const isOther = !message.saved && runs.get(message.turn) !== message.runId;
    const key = isOther ? `${message.turn} ${message.runId}` : message.turn;
    if (!isOther) runs.set(message.turn, message.runId);
    if (!turns.has(key)) turns.set(key, { turn: message.turn, question: '', answers: [] });
    const turn = turns.get(key);
    if (message.role === 'user') turn.question = `${turn.question} ${textOf(message)}`.trim();
    if (message.role === 'assistant') turn.answers.push(message);
  }
  return [...turns.values()];
}

/** What happened in a round, each with a begin and an end.  */
function spansOf(answer, round) {
  const { model, status, createdAt, durationMs, usage } = answer;
  const tokens = usage ? `${usage.inputTokens} in, ${usage.outputTokens} out` : '';
  // A stored message is as old as its end.
  const from = durationMs === null ? createdAt : createdAt - durationMs;
  const spans = [
    {
      name: model ?? 'model',
      kind: 'model',
      status: status === 'complete' ? 'ok' : status,
      note: [`round ${round + 1}`, tokens].filter(Boolean).join(' · '),
      from,
      to: durationMs === null ? null : createdAt,
      tookMs: durationMs,
    },
  ];
  for (const call of callsOf(answer))
    spans.push({
      name: call.name,
      kind: 'tool',
      status: call.status,
      note: '',
      from: call.startedAt,
      to: call.finishedAt,
      tookMs: call.startedAt && call.finishedAt ? call.finishedAt - call.startedAt : null,
    });
  return spans;
}

function spanRow({ name, kind, status, note, from, to, tookMs }, { begin, end }) {
  const bar = el('i');
  if (from) {
    const length = Math.max(1, end - begin);
    const left = Math.min(99, Math.max(0, (100 * (from - begin)) / length));
    bar.style.left = `${left}%`;
    bar.style.width = `${Math.max(1, Math.min(100 - left, (100 * ((to ?? end) - from)) / length))}%`;
  }
  bar.hidden = !from;
  const row = el(
    `li.span.${kind}`,
    {},
    el('span.span-name', {}, name),
    el('span.span-note', {}, note),
    el('span.span-track', { 'aria-hidden': 'true' }, bar),
    el('span.span-status', {}, WORDS[status] ?? status),
    el('span.span-took', {}, duration(tookMs)),
  );
  row.dataset.status = status;
  return row;
}

function turnNode({ turn, question, answers }, number) {
  const spans = answers.flatMap((answer, round) => spansOf(answer, round));
  const times = spans.flatMap(({ from, to }) => [from, to]).filter(Boolean);
  const range = { begin: Math.min(...times), end: Math.max(...times) };
  const calls = spans.filter(({ kind }) => kind === 'tool').length;
  const saved = answers.every(({ saved }) => saved);
  const facts = [
    counted(answers.length, 'model call'),
    calls ? counted(calls, 'tool call') : '',
    times.length ? duration(range.end - range.begin) : '',
    saved ? '' : 'not in history',
  ];
  const section = el(
    'section.turn',
    {},
    el('h3', {}, `${number}. ${clip(question || 'without a question', 90)}`),
    el('p.soft', {}, facts.filter(Boolean).join(' · ')),
    el('ol.spans', {}, ...spans.map((span) => spanRow(span, range))),
  );
  section.dataset.turn = turn;
  return section;
}

/** A row of the audit table; `isShown`: its call is in the version of the chat that is shown. */
function auditRow({ name, status, startedAt, finishedAt, turn, redacted }, isShown) {
  const at = dateOf(finishedAt ?? startedAt);
  const marks = [redacted ? 'redacted' : '', isShown ? '' : 'in another version'].filter(Boolean).join(', ');
  return el(
    'tr',
    {},
    el('td', {}, at ? at.toLocaleTimeString() : '–'),
    el('td', {}, el('code', {}, name)),
    el('td', {}, WORDS[status] ?? status),
    el('td', {}, startedAt && finishedAt ? duration(finishedAt - startedAt) : '–'),
    el('td', {}, String(turn + 1)),
    el('td', {}, marks),
  );
}

const AUDIT_HEADS = ['Time', 'Tool', 'Status', 'Took', 'Turn', 'Note'];

export class Timeline {
  #turns = el('div');
  #rows = el('tbody');
  #count = el('p.soft');
  #painted = null;
  #read = throttled(
    (chat) => this.#paintAll(chat),
    300,
    (error) => {
      this.clear();
      this.#turns.replaceChildren(failure(error));
    },
  );

  constructor(root) {
    root.append(
      this.#turns,
      el('h3', {}, 'Audit table'),
      this.#count,
      el(
        'div.wide-table',
        { tabIndex: 0, role: 'region', 'aria-label': 'Audit table' },
        el(
          'table',
          {},
          el('thead', {}, el('tr', {}, ...AUDIT_HEADS.map((head) => el('th', { scope: 'col' }, head)))),
          this.#rows,
        ),
      ),
    );
  }

  /** Removes what is shown; the next `paint` reads. */
  clear() {
    this.#painted = null;
    for (const node of [this.#turns, this.#rows, this.#count]) node.replaceChildren();
  }

  paint(chat) {
    const snapshot = chat.view.getSnapshot();
    if (snapshot === this.#painted) return;
    this.#painted = snapshot;
    this.#read(chat);
  }

  async #paintAll(chat) {
    const { messages } = chat.view.getSnapshot();
    const turns = turnsOf(messages).filter(({ answers }) => answers.length);
    const nodes = turns.map((turn, at) => turnNode(turn, at + 1));
    this.#turns.replaceChildren(...(nodes.length ? nodes : [el('p.soft', {}, 'Nothing has been asked yet.')]));
    const { items, cursor } = await chat.invocations({ limit: AUDIT_ROWS });
    const shown = new Set(
      chat.view
        .getSnapshot()
        .messages.flatMap(callsOf)
        .map(({ id }) => id),
    );
    this.#rows.replaceChildren(...items.map((row) => auditRow(row, shown.has(row.id))));
    setText(
      this.#count,
      cursor ? `The newest ${items.length} rows.` : `${counted(items.length, 'row')}, the newest first.`,
    );
  }
}
