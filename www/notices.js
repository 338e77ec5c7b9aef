// The bar above the conversation: what is unfinished, what failed, and what can be done about it.

import { clip, el, shortTime } from './dom.js';

const questionOf = (run) => clip(run.input.flatMap(({ parts }) => parts).map((part) => part.text ?? '').join(' ').replace(/\s+/g, ' ').trim(), 70);

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

function unfinished(chat, run) {
  const question = questionOf(run);
  const quoted = el('q', {}, question);
  const discard = ['Discard', () => chat.discard(run.id)];
  // One run at a time lives here.
  const go = (label) => (chat.running ? [] : [[label, () => chat.resume(run.id), 'primary'], discard]);
  if (run.state === 'live') return notice('live', [el('strong', {}, 'Running in another tab: '), quoted]);
  if (run.state === 'failed') {
    const reason = run.error?.message ?? 'no reason was given';
    return notice('failed', [el('strong', {}, 'This run failed: '), `${reason.replace(/[.\s]*$/, '')}. Nothing of it is lost.`], go('Retry'), question);
  }
  const answered = run.openCalls.filter((call) => call.state === 'answered').length;
  const started = run.openCalls.filter((call) => call.state === 'started').length;
  const facts = [
    answered ? `${answered} of ${run.openCalls.length} calls had finished and will not run again.` : '',
    started ? `${started === 1 ? 'One was' : `${started} were`} interrupted: the model will be told.` : '',
  ].filter(Boolean).join(' ');
  return notice('cut', [el('strong', {}, 'This run was cut off: '), quoted, ` (${shortTime(run.startedAt)}). ${facts}`], go('Resume'), question);
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
    const run = chat.view.getSnapshot().run;
    const retryAt = chat.running ? run?.retryAt : undefined;
    const key = JSON.stringify([chat.id, chat.pending, chat.running, chat.trouble?.text, retryAt, this.#message]);
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
    const nodes = chat.pending.map((one) => unfinished(chat, one));
    if (chat.trouble) {
      const { text, again } = chat.trouble;
      nodes.push(notice('failed', [text], [...(again ? [['Store again', again, 'primary']] : []), dismiss(() => { chat.trouble = null; })]));
    }
    if (retryAt) nodes.push(this.#countdown(retryAt));
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
