// A tool call as a card: its arguments, its status and its result.

import { clip, duration, el, setText, visible } from './dom.js';

const WORDS = {
  waiting: 'waiting',
  pending: 'waiting',
  running: 'running',
  ok: 'done',
  error: 'failed',
  interrupted: 'interrupted',
  aborted: 'stopped',
  rejected: 'rejected',
  asking: 'needs your approval',
  awaiting: 'the answer comes later',
};

const pretty = (value) => (typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? ''));

/** Arguments on one line. */
function brief(args) {
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return clip(pretty(args), 80);
  const members = Object.entries(args).map(
    ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return clip(members.join(', '), 80);
}

/** A pending call that has a start time is running. */
function statusOf({ call, awaitingApproval, awaitingResult }) {
  if (awaitingApproval) return 'asking';
  if (awaitingResult) return 'awaiting';
  return call.status === 'pending' && call.startedAt ? 'running' : call.status;
}

export class Card {
  #parts = {
    name: el('code.call-name'),
    args: el('span.call-args'),
    status: el('span.call-status'),
    took: el('span.call-took'),
    full: el('pre'),
    result: el('pre.call-result'),
    id: el('code'),
  };
  #resultTitle = el('h4', {}, 'Result');
  #decide = null;
  /** True if the call waits for a decision that can be made here. */
  #canDecide = false;
  /** True until a decision is stored, or has failed. */
  #isDeciding = false;
  #reason = el('input.reason', {
    type: 'text',
    placeholder: 'Reason (optional)',
    'aria-label': 'Reason for rejecting',
  });
  #approval = el(
    'div.actions.approval',
    { hidden: true, role: 'group', 'aria-label': 'Approval' },
    this.#button('Approve', 'primary', () => this.#decide?.(true)),
    this.#button('Reject', 'quiet', () => this.#decide?.(false, this.#reason.value)),
    this.#reason,
  );

  #answer = null;
  #answerField = el('input.reason', {
    type: 'text',
    'aria-label': 'The answer',
    placeholder: 'The answer, in the place of who was asked',
  });
  #answerForm = el(
    'form.approval',
    { hidden: true, role: 'group', 'aria-label': 'Result that comes later' },
    this.#answerField,
    el('button.primary', { type: 'submit' }, 'Send the answer'),
  );

  #button(label, style, action) {
    const button = el(`button.${style}`, { type: 'button' }, label);
    button.addEventListener('click', () => {
      // A second click decides nothing.
      this.#isDeciding = this.#approval.hidden = true;
      Promise.resolve(action())
        .catch(() => {})
        .finally(() => {
          this.#isDeciding = false;
          this.#approval.hidden = !this.#canDecide;
        });
    });
    return button;
  }

  constructor() {
    const { name, args, status, took, full, result, id } = this.#parts;
    this.details = el(
      'details.call',
      {},
      el(
        'summary',
        {},
        el('span.call-mark', { 'aria-hidden': 'true' }),
        el('span.call-line', {}, name, args),
        status,
        took,
      ),
      el(
        'div.call-body',
        {},
        el('h4', {}, 'Arguments'),
        full,
        this.#resultTitle,
        result,
        el('p.call-id', {}, 'call ', id),
      ),
    );
    this.node = el('div.call-frame', {}, this.details, this.#approval, this.#answerForm);
    this.#answerForm.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.#answerField.value.trim();
      if (text) this.#answer?.(text);
    });
  }

  /** `part`: a call of a view, possibly incomplete. `decide(id, approves, reason)` decides about it if it waits for an
   *  approval, `answer(id, text)` answers it if its result comes later; each may be absent. */
  update(part, { decide, answer }) {
    const { call, awaitingApproval: asks } = part;
    const status = statusOf(part);
    this.#decide = decide && ((approves, reason) => decide(call.id, approves, reason));
    this.#canDecide = Boolean(asks && decide);
    this.#approval.hidden = !this.#canDecide || this.#isDeciding;
    this.#answer = answer && ((text) => answer(call.id, text));
    this.#answerForm.hidden = !(part.awaitingResult && answer);
    const { name, args, full, result, id } = this.#parts;
    this.details.dataset.status = status;
    this.details.dataset.name = call.name;
    if (asks) this.details.open = true;
    setText(name, call.name);
    setText(args, visible(brief(call.arguments)));
    setText(full, visible(pretty(call.arguments)));
    setText(this.#parts.status, WORDS[status] ?? status);
    setText(this.#parts.took, call.startedAt && call.finishedAt ? duration(call.finishedAt - call.startedAt) : '');
    const content = call.result?.content;
    this.#resultTitle.hidden = result.hidden = content === undefined;
    if (content !== undefined) setText(result, pretty(content));
    setText(id, call.callId);
    return this;
  }
}
