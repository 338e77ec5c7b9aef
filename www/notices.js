// The bar above the conversation: what is unfinished, what failed, and what can be done about it.

import { clip, el, shortTime } from './dom.js';

const wordsOf = ({ parts }) => parts.map((part) => part.text ?? '').join(' ');

function notice(kind, words, actions = [], about = '') {
  const node = el(`div.notice.${kind}`, {},
    el('p', {}, ...words),
    ...(actions.length ? [el('div.actions', {}, ...actions.map(([label, act, look = 'quiet']) => {
      const button = el(`button.${look}`, { type: 'button', 'aria-label': about ? `${label}: ${about}` : label }, label);
      button.addEventListener('click', act);
      return button;
    }))] : []));
  return node;
}

/** What the view shows of a run that does not live here, in words. */
function unfinished(chat, { messages, run }) {
  const turn = messages.filter(({ saved, runId }) => !saved && runId === run.id);
  const question = clip(turn.filter(({ role }) => role === 'user').map(wordsOf).join(' ').replace(/\s+/g, ' ').trim(), 70);
  const quoted = el('q', {}, question);
  // One run at a time lives here.
  const go = (label) => (chat.running ? [] : [[label, () => chat.resume(run.id), 'primary'], ['Discard', () => chat.discard(run.id)]]);
  if (run.status === 'running') return notice('live', [el('strong', {}, 'Running in another tab: '), quoted]);
  if (run.status === 'failed') {
    const reason = run.error?.message ?? 'no reason was given';
    return notice('failed', [el('strong', {}, 'This run failed: '), `${reason.replace(/[.\s]*$/, '')}. Nothing of it is lost.`], go('Retry'), question);
  }
  if (run.status === 'cancelled') return notice('info', [el('strong', {}, 'Stopped. '), 'The history is as it was before.'], go('Resume'), question);
  const calls = turn.flatMap(({ parts }) => parts).filter(({ type }) => type === 'tool').map(({ call }) => call);
  const round = calls.filter(({ roundIndex }) => roundIndex === calls.at(-1).roundIndex);
  const started = round.filter(({ status }) => status === 'interrupted').length;
  const answered = round.filter(({ status }) => status !== 'interrupted' && status !== 'pending').length;
  const facts = [
    answered ? `${answered} of ${round.length} calls had finished and will not run again.` : '',
    started ? `${started === 1 ? 'One was' : `${started} were`} interrupted: the model will be told.` : '',
  ].filter(Boolean).join(' ');
  return notice('cut', [el('strong', {}, 'This run was cut off: '), quoted, ` (${shortTime(turn[0]?.createdAt)}). ${facts}`], go('Resume'), question);
}

export class Notices {
  #root = document.querySelector('#notices');
  #painted = '';
  #message = null;
  #timer = 0;

  /** Something to say once, until it is dismissed or the next one comes. */
  say(text) {
    this.#message = text;
  }

  paint(chat) {
    const snapshot = chat.view.getSnapshot();
    const { run } = snapshot;
    const elsewhere = run !== null && !run.cancel;
    const unsaved = elsewhere ? snapshot.messages.filter(({ saved }) => !saved).map(({ parts }) => parts.map(({ call }) => call?.status)) : [];
    const key = JSON.stringify([chat.id, run, elsewhere, unsaved, chat.running, chat.trouble?.text, this.#message]);
    if (key === this.#painted) return;
    this.#painted = key;
    const repaint = () => {
      this.#painted = '';
      this.paint(chat);
    };
    const dismiss = (forget) => ['Dismiss', () => {
      forget();
      repaint();
    }];
    const nodes = elsewhere ? [unfinished(chat, snapshot)] : [];
    if (chat.trouble) {
      const { text, again } = chat.trouble;
      nodes.push(notice('failed', [text], [...(again ? [['Store again', again, 'primary']] : []), dismiss(() => { chat.trouble = null; })]));
    }
    if (run?.retryAt) nodes.push(this.#countdown(run.retryAt));
    if (this.#message) nodes.push(notice('info', [this.#message], [dismiss(() => { this.#message = null; })]));
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
