// The notices above the conversation: unfinished and failed runs, with buttons to resume or discard them.

import { clip, el, shortTime } from './dom.js';
import { toolsFor } from './tools.js';

const TOOLS = toolsFor({ hostile: true, counter: null });

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join(' ');

function notice(kind, content, actions = [], subject = '', details = []) {
  const node = el(
    `div.notice.${kind}`,
    {},
    el(
      'div.notice-text',
      {},
      el('p', {}, ...content),
      ...(details.length ? [el('ul', {}, ...details.map((text) => el('li', {}, text)))] : []),
    ),
    ...(actions.length
      ? [
          el(
            'div.actions',
            {},
            ...actions.map(([label, action, style = 'quiet']) => {
              const button = el(
                `button.${style}`,
                { type: 'button', 'aria-label': subject ? `${label}: ${subject}` : label },
                label,
              );
              button.addEventListener('click', action);
              return button;
            }),
          ),
        ]
      : []),
  );
  return node;
}

/** The notice of a run that is not active in this tab. */
function unfinished(chat, { messages, run }) {
  const turn = messages.filter(({ saved, runId }) => !saved && runId === run.id);
  const question = clip(
    turn
      .filter(({ role }) => role === 'user')
      .map(textOf)
      .join(' ')
      .replace(/\s+/g, ' ')
      .trim(),
    70,
  );
  const quoted = el('q', {}, question);
  // Only one run at a time is active in this tab.
  const buttons = (label) =>
    chat.running
      ? []
      : [
          [label, () => chat.resume(run.id), 'primary'],
          ['Discard', () => chat.discard(run.id)],
        ];
  if (run.status === 'running') return notice('live', [el('strong', {}, 'Running in another tab: '), quoted]);
  if (run.status === 'failed') {
    const reason = run.error?.message ?? 'unknown reason';
    return notice(
      'failed',
      [el('strong', {}, 'This run failed: '), `${reason.replace(/[.\s]*$/, '')}. Nothing is lost.`],
      buttons('Retry'),
      question,
    );
  }
  if (run.status === 'waiting_approval')
    return notice(
      'info',
      [el('strong', {}, 'Waiting for your approval: '), quoted],
      chat.running ? [] : [['Discard', () => chat.discard(run.id)]],
      question,
    );
  // A stopped run is ended: its question can be sent again.
  if (run.status === 'cancelled') {
    const text = turn
      .filter(({ role }) => role === 'user')
      .map(textOf)
      .join(' ');
    const actions = chat.running
      ? []
      : [
          ['Ask again', () => chat.send(text), 'primary'],
          ['Discard', () => chat.discard(run.id)],
        ];
    return notice('info', [el('strong', {}, 'Stopped. '), 'The history is unchanged.'], actions, question);
  }
  const calls = turn
    .flatMap(({ parts }) => parts)
    .filter(({ type }) => type === 'tool')
    .map(({ call }) => call);
  const round = calls.filter(({ roundIndex }) => roundIndex === calls.at(-1).roundIndex);
  const cut = round.filter(({ status }) => status === 'interrupted');
  const asks = cut.filter(({ name }) => TOOLS[name]?.onInterrupted === 'ask').length;
  const started = cut.length - asks;
  const answered = round.filter(({ status }) => status !== 'interrupted' && status !== 'pending').length;
  const facts = [
    answered ? `${answered} of ${round.length} calls had finished and will not run again.` : '',
    started ? `${started === 1 ? 'One was' : `${started} were`} interrupted; the model will be informed.` : '',
    asks ? `${asks === 1 ? 'One was' : `${asks} were`} interrupted; you will be asked before it runs again.` : '',
  ]
    .filter(Boolean)
    .join(' ');
  return notice(
    'cut',
    [el('strong', {}, 'This run was interrupted: '), quoted, ` (${shortTime(turn[0]?.createdAt)}). ${facts}`],
    buttons('Resume'),
    question,
  );
}

/** The notice of an unfinished run that the view does not show. */
function hidden(chat, { id, state, input, error }) {
  const question = clip(input.map(textOf).join(' ').replace(/\s+/g, ' ').trim(), 70);
  const what = question ? ['The edited question ', el('q', {}, question)] : ['Another answer'];
  const reason = (error?.message ?? '').replace(/[.\s]*$/, '');
  const why =
    state === 'failed'
      ? ` failed: ${reason}. `
      : state === 'interrupted'
        ? ' was interrupted. '
        : ' waits for your approval. ';
  const label = { failed: 'Retry', interrupted: 'Resume' }[state] ?? 'Show it';
  return notice(
    state === 'failed' ? 'failed' : 'cut',
    [...what, why, 'The chat is as it was before.'],
    [
      [label, () => chat.resume(id), 'primary'],
      ['Discard', () => chat.discard(id)],
    ],
    question || 'another answer',
  );
}

export class Notices {
  #root = document.querySelector('#notices');
  #painted = '';
  #message = null;
  #timer = 0;

  /** Shows a text, with a list below it and a button `[label, action]`, until it is dismissed or replaced. */
  show(text, details = [], button = null) {
    this.#message = text === null ? null : { text, details, button };
  }

  paint(chat) {
    const snapshot = chat.view.getSnapshot();
    const { run } = snapshot;
    const elsewhere = run !== null && !run.cancel;
    const unsaved = elsewhere
      ? snapshot.messages.filter(({ saved }) => !saved).map(({ parts }) => parts.map(({ call }) => call?.status))
      : [];
    const key = JSON.stringify([
      chat.id,
      run,
      elsewhere,
      unsaved,
      chat.running,
      chat.failure?.text,
      this.#message,
      chat.hiddenRuns,
    ]);
    if (key === this.#painted) return;
    this.#painted = key;
    const repaint = () => {
      this.#painted = '';
      this.paint(chat);
    };
    const dismiss = (clear) => [
      'Dismiss',
      () => {
        clear();
        repaint();
      },
    ];
    const nodes = elsewhere ? [unfinished(chat, snapshot)] : [];
    if (!chat.running) nodes.push(...chat.hiddenRuns.map((pending) => hidden(chat, pending)));
    if (chat.failure) {
      const { text, retry } = chat.failure;
      nodes.push(
        notice(
          'failed',
          [text],
          [
            ...(retry ? [['Store again', retry, 'primary']] : []),
            dismiss(() => {
              chat.failure = null;
            }),
          ],
        ),
      );
    }
    if (run?.retryAt) nodes.push(this.#countdown(run.retryAt));
    if (this.#message)
      nodes.push(
        notice(
          'info',
          [this.#message.text],
          [
            ...(this.#message.button ? [[...this.#message.button, 'primary']] : []),
            dismiss(() => {
              this.#message = null;
            }),
          ],
          '',
          this.#message.details,
        ),
      );
    this.#root.replaceChildren(...nodes);
  }

  #countdown(at) {
    const seconds = el('span');
    const tick = () => {
      const left = Math.max(0, Math.ceil((at - Date.now()) / 1000));
      seconds.textContent = left ? `in ${left} s` : 'now';
      clearTimeout(this.#timer);
      if (left && (seconds.isConnected || !this.#timer)) this.#timer = setTimeout(tick, 250);
    };
    this.#timer = 0;
    tick();
    this.#timer = setTimeout(tick, 250);
    return notice('info', ['The model did not answer. Trying again ', seconds, '.']);
  }
}
