// What a person can do with a stored message: show another one of its place, edit it, ask for another answer, erase it.

import { el, icon } from './dom.js';

function tool(name, label, action) {
  const button = el('button.plain', { type: 'button', title: label, 'aria-label': label }, icon(name));
  button.addEventListener('click', action);
  return button;
}

/** The field that takes the place of a question while it is edited. */
function editForm(text, { send, cancel }) {
  const field = el('textarea', {
    value: text,
    rows: Math.min(8, text.split('\n').length + 1),
    'aria-label': 'The question, edited',
  });
  const form = el(
    'form.edit',
    {},
    field,
    el(
      'div.actions',
      {},
      el('button.quiet', { type: 'button' }, 'Cancel'),
      el('button.primary', { type: 'submit' }, 'Ask this instead'),
    ),
  );
  const submit = (event) => {
    event.preventDefault();
    const edited = field.value.trim();
    if (edited) send(edited);
  };
  form.addEventListener('submit', submit);
  form.querySelector('[type=button]').addEventListener('click', cancel);
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') cancel();
    else if (event.key === 'Enter' && !event.shiftKey && event.target === field && !event.isComposing) submit(event);
    else return;
    event.stopPropagation();
  });
  return { form, field };
}

export class MessageActions {
  /** In a live region: buttons that come and go are not read out. */
  node = el('div.message-actions', { role: 'group', 'aria-label': 'This message', 'aria-live': 'off' });
  #message;
  #body;
  #actions;
  #siblings = el('span.siblings', { role: 'group', 'aria-label': 'Versions' });
  #place = el('span');
  #before = tool('before', 'Show the version before', () => this.#show(-1));
  #after = tool('after', 'Show the next version', () => this.#show(1));
  #edit = tool('edit', 'Edit the question', () => this.#beginEdit());
  #again = tool('again', 'Ask for another answer', () => this.#actions.regenerate(this.#message.id));
  #erase = tool('bin', 'Erase this message', () => this.#actions.erase(this.#message));
  #versions = null;
  /** The form of the edit that is open. */
  #form = null;
  #canEdit = false;

  /** `body`: the element of the message that the field of an edit takes the place of. */
  constructor(body) {
    this.#body = body;
    this.#siblings.append(this.#before, this.#place, this.#after);
    this.node.append(this.#siblings, this.#edit, this.#again, this.#erase);
  }

  /** `canEdit`, `canErase`: what the chat allows now. `isLast`: the message ends its turn. `versions`: the siblings that
   *  are chosen here. */
  update(message, { canEdit, canErase, isLast, versions }, actions) {
    this.#message = message;
    this.#actions = actions;
    this.#versions = versions;
    this.#canEdit = canEdit;
    const isQuestion = message.role === 'user';
    this.#edit.hidden = !(canEdit && isQuestion);
    this.#again.hidden = !(canEdit && !isQuestion && isLast);
    this.#erase.hidden = !canErase;
    const count = versions?.ids.length ?? 1;
    this.#siblings.hidden = count < 2;
    this.#place.textContent = count < 2 ? '' : `${versions.index + 1} / ${count}`;
    this.#before.disabled = !canErase || !versions?.index;
    this.#after.disabled = !canErase || !versions || versions.index + 1 >= count;
    this.node.classList.toggle('last', isLast);
    this.#arrange();
  }

  /** Shows the buttons, or the form of an edit in the place of the message. */
  #arrange() {
    const buttons = [this.#siblings, this.#edit, this.#again, this.#erase];
    this.node.hidden = this.#form !== null || !this.#message.saved || buttons.every(({ hidden }) => hidden);
    this.#body.hidden = this.#form !== null;
  }

  #show(step) {
    this.#actions.showVersion(this.#versions.ids[this.#versions.index + step]);
  }

  #beginEdit() {
    const text = this.#message.parts.map((part) => part.text ?? '').join('\n');
    const end = () => {
      form.remove();
      this.#form = null;
      this.#arrange();
    };
    const { form, field } = editForm(text, {
      send: (edited) => {
        if (!this.#canEdit) return; // an answer is under way
        end();
        this.#actions.edit(this.#message.id, edited);
      },
      cancel: () => {
        end();
        this.#edit.focus();
      },
    });
    this.#body.after(form);
    this.#form = form;
    this.#arrange();
    form.scrollIntoView({ block: 'nearest' });
    field.focus();
    field.setSelectionRange(text.length, text.length);
  }
}
