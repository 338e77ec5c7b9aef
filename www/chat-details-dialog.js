// Who owns the conversation, what the newest request contained, and the chat as a file.

import { el } from './dom.js';
import { requestLine } from './request-description.js';
import { download, readChatFile } from './session-files.js';

const OWNERS = {
  session: 'this page',
  response: 'the service (chain of responses)',
  conversation: 'the service (conversation)',
  caller: 'an application',
};

const HINTS = {
  running: 'The owner can be changed when the run is over.',
  format: 'Only OpenAI Responses has services that keep conversations. Choose that wire format in the settings.',
  unavailable:
    'The chosen wire format has no service that keeps conversations: choose OpenAI Responses in the settings, or this page here.',
  caller:
    'An application keeps this conversation, and passes all of it with each question. Here it continues with this page as the owner.',
  session: 'Every request contains the whole conversation.',
  response: 'A request names the newest response and contains what came after it.',
  conversation: 'A request names the conversation and contains what the service does not have.',
};

export class ChatDetailsDialog {
  #chat;
  #actions;
  #dialog = document.querySelector('#chat-details');
  #form = this.#dialog.querySelector('form');
  #message = this.#dialog.querySelector('.message-line');
  #line = document.querySelector('#chat-details-line');
  #painted = null;
  /** True while a choice or a file is worked on. */
  #isBusy = false;

  /** `actions`: `{ chat(), restore(file), formatKeepsConversations() }`. */
  constructor(actions) {
    this.#actions = actions;
    const on = (selector, type, work) => this.#dialog.querySelector(selector).addEventListener(type, work);
    document.querySelector('#chat-details-open').addEventListener('click', () => this.open());
    on('#chat-details-close', 'click', () => this.#dialog.close());
    on('#owner-apply', 'click', () => this.#try(() => this.#applyOwner()));
    on('#export-lines', 'click', () =>
      this.#try(async () =>
        download(`${this.#chat.fileName}.jsonl`, await this.#chat.exportLines(), 'application/jsonl'),
      ),
    );
    on('#export-bytes', 'click', () =>
      this.#try(async () =>
        download(`${this.#chat.fileName}.rethread`, await this.#chat.serialize(), 'application/octet-stream'),
      ),
    );
    on('#restore-file', 'change', (event) => this.#try(() => this.#restore(event.target)));
    for (const radio of this.#form.elements.owner) radio.addEventListener('change', () => this.#paintForm());
    // Enter in the id field must not submit.
    this.#form.addEventListener('submit', (event) => event.preventDefault());
  }

  open() {
    this.#showMessage('');
    this.#painted = null;
    this.paint(this.#actions.chat());
    this.#dialog.showModal();
  }

  /** Shows the details of a chat: the line below the question, and the dialog if it is open. */
  paint(chat) {
    this.#chat = chat;
    const { owner, lastRequest } = chat;
    this.#line.textContent = [`Owner: ${OWNERS[owner.kind]}`, ...(lastRequest ? [requestLine(lastRequest)] : [])].join(
      ' · ',
    );
    const { chat: paintedChat, owner: paintedOwner, lastRequest: paintedRequest } = this.#painted ?? {};
    const ownerKey = JSON.stringify(owner);
    if (chat !== paintedChat || ownerKey !== paintedOwner) {
      const { elements } = this.#form;
      for (const radio of elements.owner) radio.checked = radio.value === owner.kind;
      elements.conversation.value = owner.conversationId ?? '';
    }
    if (chat !== paintedChat || lastRequest !== paintedRequest) this.#paintRequest(lastRequest);
    this.#painted = { chat, owner: ownerKey, lastRequest };
    this.#paintForm();
  }

  #paintForm() {
    const { owner, isUnderWay } = this.#chat;
    const { elements } = this.#form;
    // No button stands for an application.
    const chosen = elements.owner.value || owner.kind;
    const isAtService = owner.kind === 'response' || owner.kind === 'conversation';
    const offered = this.#actions.formatKeepsConversations();
    for (const radio of elements.owner)
      radio.disabled = isUnderWay || this.#isBusy || (radio.value !== 'session' && !offered);
    elements.conversation.disabled = isUnderWay || !offered;
    elements.conversation.closest('.field').hidden = chosen !== 'conversation';
    const isSame =
      chosen === owner.kind &&
      (chosen !== 'conversation' || elements.conversation.value.trim() === owner.conversationId);
    this.#dialog.querySelector('#owner-apply').hidden = isSame && chosen !== 'conversation';
    this.#dialog.querySelector('#owner-apply').disabled =
      isUnderWay || this.#isBusy || (chosen !== 'session' && !offered);
    const hint = !offered && isAtService ? 'unavailable' : isUnderWay ? 'running' : chosen;
    this.#dialog.querySelector('#owner-hint').textContent = [HINTS[hint], !offered && !isAtService ? HINTS.format : '']
      .join(' ')
      .trim();
  }

  #paintRequest(request) {
    const root = this.#dialog.querySelector('#last-request');
    if (!request) {
      root.replaceChildren(el('p.soft', {}, 'This page has sent no request of this chat since it was loaded.'));
      return;
    }
    const { items, newItemCount, isDelta, keptItemCount, conversationId, previousResponseId, body } = request;
    const facts = isDelta
      ? [
          `${items.length} of ${items.length + keptItemCount} items ${items.length === 1 ? 'was' : 'were'} sent. The service had the other ${keptItemCount}, `,
          ...(conversationId
            ? ['in the conversation ', el('code', {}, conversationId)]
            : ['up to the response ', el('code', {}, previousResponseId)]),
          '.',
        ]
      : [
          items.length === 1
            ? '1 item was sent, the whole conversation. '
            : `${items.length} items were sent, the whole conversation. `,
          newItemCount < items.length
            ? `${newItemCount} of them ${newItemCount === 1 ? 'was' : 'were'} not in the request before.`
            : '',
        ];
    root.replaceChildren(
      el('p', {}, ...facts),
      el(
        'ol.request-items',
        { tabIndex: 0, 'aria-label': 'Items of the request' },
        ...items.map(({ label, text, isNew }) =>
          el(
            `li${isNew ? '.new' : ''}`,
            {},
            el('span.request-label', {}, label),
            isNew ? el('span.tag', {}, 'new') : '',
            el('span.request-text', {}, text),
          ),
        ),
      ),
      el('details', {}, el('summary', {}, 'The body, as it was sent'), el('pre', { tabIndex: 0 }, body)),
    );
  }

  async #applyOwner() {
    const { elements } = this.#form;
    await this.#chat.chooseOwner(elements.owner.value, elements.conversation.value.trim());
    this.#showMessage(
      `The owner is now ${OWNERS[this.#chat.owner.kind]}. What it lacks goes out with the next request.`,
    );
  }

  async #restore(input) {
    const [file] = input.files;
    input.value = ''; // the same file may be chosen again
    if (!file) return;
    await this.#actions.restore(await readChatFile(file));
    this.#dialog.close();
  }

  async #try(work) {
    this.#isBusy = true;
    this.#showMessage('');
    this.#paintForm();
    try {
      await work();
    } catch (error) {
      this.#showMessage(error?.message ?? String(error), true);
    } finally {
      this.#isBusy = false;
      this.paint(this.#actions.chat());
    }
  }

  #showMessage(text, isFailure = false) {
    this.#message.textContent = text;
    this.#message.hidden = !text;
    this.#message.classList.toggle('failed', isFailure);
    if (text) this.#message.scrollIntoView({ block: 'nearest' });
  }
}
