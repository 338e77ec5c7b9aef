// Renders the conversation from `session.view()`. An unchanged message is the same object as before and keeps its
// nodes; a growing message updates them in place.

import { Card } from './card.js';
import { duration, el, setText } from './dom.js';
import { MessageActions } from './message-actions.js';

const textOf = (message) =>
  message.parts
    .filter((part) => part.type === 'text')
    .map((part) => part.text)
    .join('\n');

/** The blocks of a message. Consecutive calls form one block. */
function blocksOf(message) {
  const blocks = [];
  for (const part of message.parts) {
    if (part.type === 'tool' || part.type === 'tool_call') {
      if (blocks.at(-1)?.type !== 'calls') blocks.push({ type: 'calls', parts: [] });
      blocks.at(-1).parts.push(part);
    } else if (['text', 'reasoning', 'refusal'].includes(part.type)) {
      blocks.push(part);
    } else if (part.type !== 'opaque') {
      blocks.push({ type: 'text', text: `[${part.name ?? part.type}]` });
    }
  }
  return blocks;
}

/** By id of each message: whether it ends its turn, and the versions that are chosen there. The versions of an answer
 *  are those of its first message, and are chosen where the answer ends. */
function endsOfTurns(messages) {
  const ends = new Map();
  let versions = null;
  messages.forEach(({ id, role, turn, siblings }, at) => {
    const own = siblings?.ids.length > 1 ? siblings : null;
    const next = messages[at + 1];
    const isLast = role === 'user' || next?.turn !== turn || next.role === 'user';
    if (role === 'user') versions = null;
    else versions ??= own;
    ends.set(id, { isLast, versions: role === 'user' ? own : isLast ? versions : null });
    if (isLast) versions = null;
  });
  return ends;
}

class TextBlock {
  type = 'text';
  node = el('p.text');

  update({ text }) {
    setText(this.node, text);
    this.node.hidden = !text.trim();
  }
}

class RefusalBlock extends TextBlock {
  type = 'refusal';
  node = el('p.text.refusal');
}

class ReasoningBlock {
  type = 'reasoning';
  #text = el('p');
  node = el('details.reasoning', {}, el('summary', {}, 'Thinking'), this.#text);

  update({ text }) {
    setText(this.#text, text);
  }
}

class CallsBlock {
  type = 'calls';
  #label = el('h3.round-label');
  #cards = [];
  node = el('div.calls', { role: 'group' }, this.#label);

  /** `doing`: what can be done with the calls now, see `MessageView.paint`. */
  update({ parts }, doing) {
    const known = parts.filter((part) => part.call);
    const coming = parts.length - known.length;
    if (known.length) {
      const count = known.length === 1 ? 'one call' : `${known.length} calls at once`;
      setText(this.#label, `Round ${known[0].call.roundIndex + 1} · ${count}`);
    } else setText(this.#label, coming === 1 ? 'Calling a tool…' : `Calling ${coming} tools…`);
    this.node.setAttribute('aria-label', this.#label.textContent);
    known.forEach((part, at) => {
      this.#cards[at] ??= new Card();
      this.#cards[at].update(part, doing);
      if (!this.#cards[at].node.parentNode) this.node.append(this.#cards[at].node);
    });
    for (const card of this.#cards.splice(known.length)) card.node.remove();
  }
}

const BLOCKS = { text: TextBlock, refusal: RefusalBlock, reasoning: ReasoningBlock, calls: CallsBlock };
const ENDINGS = { stopped: 'stopped', truncated: 'truncated at the length limit', failed: 'failed' };
const endingOf = ({ status, saved }) => (status === 'truncated' && !saved ? 'interrupted' : ENDINGS[status]);

class MessageView {
  #blocks = [];
  #body = el('div.body');
  #meta = el('p.meta');
  #tools = new MessageActions(this.#body);
  #painted = null;
  #state = '';

  constructor(message) {
    this.node = el(
      `article.message.${message.role}`,
      { 'aria-label': message.role === 'user' ? 'You' : 'Assistant' },
      this.#body,
      this.#meta,
      this.#tools.node,
    );
    this.node.dataset.message = message.id;
  }

  /** `allowed`: `{ decide, answer, canEdit, canErase, isLast, versions }`, where `decide` and `answer` say whether calls
   *  can be approved and answered here. */
  paint(message, allowed, actions) {
    const state = JSON.stringify(allowed);
    if (message === this.#painted && state === this.#state) return;
    this.#painted = message;
    this.#state = state;
    this.node.dataset.saved = message.saved;
    this.node.dataset.status = message.status;
    const doing = {
      decide: allowed.decide && ((id, approves, reason) => actions.decide(allowed.decide, id, approves, reason)),
      answer: allowed.answer && actions.answer,
    };
    const wanted = blocksOf(message);
    wanted.forEach((block, at) => {
      if (this.#blocks[at] && this.#blocks[at].type !== block.type)
        for (const old of this.#blocks.splice(at)) old.node.remove();
      if (!this.#blocks[at]) {
        this.#blocks[at] = new BLOCKS[block.type]();
        this.#body.append(this.#blocks[at].node);
      }
      this.#blocks[at].update(block, doing);
    });
    for (const old of this.#blocks.splice(wanted.length)) old.node.remove();
    setText(this.#meta, message.role === 'assistant' ? this.#facts(message).join(' · ') : '');
    this.#meta.hidden = !this.#meta.textContent;
    this.#tools.update(message, allowed, actions);
  }

  #facts(message) {
    const { model, durationMs, usage, status, parts } = message;
    if (parts.some((part) => part.type === 'tool') && status === 'complete') return [];
    const tokens = usage ? `${usage.inputTokens} tokens in, ${usage.outputTokens} out` : '';
    return [endingOf(message), model, duration(durationMs), tokens].filter(Boolean);
  }
}

export class Conversation {
  #root = document.querySelector('#conversation');
  #scroller = document.querySelector('#scroller');
  #views = new Map();
  #waiting = el('p.thinking', { 'aria-label': 'The model is working' }, el('i'), el('i'), el('i'));
  #older = el('button.quiet.older', { type: 'button' }, 'Show older messages');
  #loadOlder = null;
  #painted = {};
  /** True while the end is shown. */
  #follows = true;

  constructor() {
    this.#scroller.addEventListener('scroll', () => {
      this.#follows = this.isAtEnd();
    });
    // A notice, the inspector or a turned phone: text that is wrapped anew would push the end out of sight.
    new ResizeObserver(() => this.#follows && this.toEnd()).observe(this.#scroller);
    this.#older.addEventListener('click', () => this.#loadOlder?.());
  }

  /** Removes everything, before another chat is shown. */
  clear() {
    this.#views.clear();
    this.#root.replaceChildren();
    this.#painted = {};
  }

  /** `chat`: `{ view, running, owner }`. `actions`: `decide(runId, call, approves, reason)`, `answer(call, text)`,
   *  `edit(id, text)`, `regenerate(id)`, `erase(message)` and `showVersion(id)`. */
  paint({ view, running: starts, owner }, actions) {
    const snapshot = view.getSnapshot();
    const key = JSON.stringify([starts, owner.kind]);
    if (snapshot === this.#painted.snapshot && key === this.#painted.key) return;
    this.#painted = { snapshot, key };
    this.#loadOlder = view.older;
    const { hasOlder, run } = snapshot;
    const messages = snapshot.messages.filter(({ role }) => role === 'user' || role === 'assistant');
    const running = starts || run?.status === 'running';
    const ends = endsOfTurns(messages);
    const seen = new Set();
    const wanted = hasOlder ? [this.#older] : [];
    for (const message of messages) {
      seen.add(message.id);
      let shown = this.#views.get(message.id);
      if (!shown) this.#views.set(message.id, (shown = new MessageView(message)));
      // A call of a run in another tab is decided there.
      const canDecide = run && message.runId === run.id && (run.cancel || run.status === 'waiting_approval');
      const isStored = message.saved && !running;
      const allowed = {
        decide: canDecide ? run.id : null,
        answer: message.saved,
        canEdit: isStored && (owner.kind === 'session' || owner.kind === 'response'),
        canErase: isStored,
        ...ends.get(message.id),
      };
      shown.paint(message, allowed, actions);
      shown.node.classList.toggle(
        'growing',
        message.status === 'streaming' &&
          Boolean(textOf(message)) &&
          !message.parts.some((part) => part.type !== 'text' && part.type !== 'reasoning'),
      );
      shown.node.classList.toggle('left', !message.saved && !running);
      wanted.push(shown.node);
    }
    for (const id of this.#views.keys()) if (!seen.has(id)) this.#views.delete(id);
    if (running && this.#awaitsModel(messages.at(-1))) wanted.push(this.#waiting);
    this.#arrange(wanted);
    this.#root.setAttribute('aria-busy', String(running));
  }

  /** True if nothing of the next answer has arrived. */
  #awaitsModel(last) {
    if (!last || last.role === 'user') return true;
    const calls = last.parts.filter((part) => part.type === 'tool');
    return calls.length > 0 && calls.every(({ call }) => call.status !== 'pending');
  }

  /** Moves only nodes whose position has changed. */
  #arrange(wanted) {
    let at = this.#root.firstChild;
    for (const node of wanted) {
      if (node === at) at = at.nextSibling;
      else this.#root.insertBefore(node, at);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  isAtEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < 80;
  }

  toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}
