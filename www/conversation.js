// Renders the conversation from `session.view()`. An unchanged message is the same object as before and keeps its
// nodes; a growing message updates them in place.

import { Card } from './card.js';
import { duration, el, setText } from './dom.js';

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

  update({ parts }, decide) {
    const known = parts.filter((part) => part.call);
    const coming = parts.length - known.length;
    if (known.length) {
      const count = known.length === 1 ? 'one call' : `${known.length} calls at once`;
      setText(this.#label, `Round ${known[0].call.roundIndex + 1} · ${count}`);
    } else setText(this.#label, coming === 1 ? 'Calling a tool…' : `Calling ${coming} tools…`);
    this.node.setAttribute('aria-label', this.#label.textContent);
    known.forEach((part, at) => {
      this.#cards[at] ??= new Card();
      this.#cards[at].update(
        part.call,
        part.awaitingApproval,
        decide && ((approves, reason) => decide(part.call.id, approves, reason)),
      );
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
  #painted = null;
  #canDecide = false;

  constructor(message) {
    this.node = el(
      `article.message.${message.role}`,
      { 'aria-label': message.role === 'user' ? 'You' : 'Assistant' },
      this.#body,
      this.#meta,
    );
    this.node.dataset.message = message.id;
  }

  /** `decide`: decides about a call that waits for an approval. */
  paint(message, decide) {
    const canDecide = Boolean(decide);
    if (message === this.#painted && canDecide === this.#canDecide) return;
    this.#painted = message;
    this.#canDecide = canDecide;
    this.node.dataset.saved = message.saved;
    this.node.dataset.status = message.status;
    const wanted = blocksOf(message);
    wanted.forEach((block, at) => {
      if (this.#blocks[at] && this.#blocks[at].type !== block.type)
        for (const old of this.#blocks.splice(at)) old.node.remove();
      if (!this.#blocks[at]) {
        this.#blocks[at] = new BLOCKS[block.type]();
        this.#body.append(this.#blocks[at].node);
      }
      this.#blocks[at].update(block, decide);
    });
    for (const old of this.#blocks.splice(wanted.length)) old.node.remove();
    setText(this.#meta, message.role === 'assistant' ? this.#facts(message).join(' · ') : '');
    this.#meta.hidden = !this.#meta.textContent;
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

  constructor() {
    this.#older.addEventListener('click', () => this.#loadOlder?.());
  }

  /** Removes everything, before another chat is shown. */
  clear() {
    this.#views.clear();
    this.#root.replaceChildren();
    this.#painted = {};
  }

  /** `decide(runId, call, approves, reason)`: a person's decision about a call. */
  paint(view, starts, decide) {
    const snapshot = view.getSnapshot();
    if (snapshot === this.#painted.snapshot && starts === this.#painted.starts) return;
    this.#painted = { snapshot, starts };
    this.#loadOlder = view.older;
    const { messages, hasOlder, run } = snapshot;
    const running = starts || run?.status === 'running';
    const last = messages.at(-1);
    const seen = new Set();
    const wanted = hasOlder ? [this.#older] : [];
    for (const message of messages) {
      if (message.role !== 'user' && message.role !== 'assistant') continue;
      seen.add(message.id);
      let shown = this.#views.get(message.id);
      if (!shown) this.#views.set(message.id, (shown = new MessageView(message)));
      // A call of a run in another tab is decided there.
      const canDecide = run && message.runId === run.id && (run.cancel || run.status === 'waiting_approval');
      shown.paint(
        message,
        canDecide && decide ? (call, approves, reason) => decide(run.id, call, approves, reason) : null,
      );
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
    if (running && this.#awaitsModel(last)) wanted.push(this.#waiting);
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
