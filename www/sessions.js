// The list of stored chats, the one that changed last first, those that a search finds, and the status of the store.

import { bytes, dateOf, el, icon, shortTime } from './dom.js';

/** Chats that are listed at first, and with each "Show older chats". */
const PAGE = 40;

/** How long after the last letter a search begins, in milliseconds. */
const TYPING = 120;

const BADGES = { live: 'running', interrupted: 'interrupted', failed: 'failed' };

export class Sessions {
  #db;
  #list = document.querySelector('#sessions');
  #more = document.querySelector('#sessions-more');
  #found = document.querySelector('#search-found');
  #limit = PAGE;
  #showsArchived = false;
  #text = '';
  #actions;
  #rows = new Map();
  #current = null;
  #states = new Map();
  #reading = false;
  #again = false;

  /** `actions`: `{ open(id), remove(id, title), archive(id, title, archived) }`. */
  constructor(db, actions) {
    this.#db = db;
    this.#actions = actions;
    this.#more.addEventListener('click', () => {
      this.#limit += PAGE;
      this.refresh();
    });
    for (const radio of document.querySelectorAll('[name=list]'))
      radio.addEventListener('change', () => {
        this.#showsArchived = radio.value === 'archived';
        this.#limit = PAGE;
        this.refresh();
      });
    const field = document.querySelector('#search');
    let timer;
    field.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#search(field.value.trimStart()), TYPING);
    });
  }

  /** Searches titles and texts; the empty text lists all chats. */
  #search(text) {
    if (text === this.#text) return;
    this.#text = text;
    this.#limit = PAGE;
    this.refresh().catch((error) => {
      this.#found.textContent = error.message;
    });
  }

  set current(id) {
    this.#current = id;
    for (const [rowId, row] of this.#rows) this.#mark(rowId, row);
  }

  #mark(id, row) {
    if (id === this.#current) row.open.setAttribute('aria-current', 'page');
    else row.open.removeAttribute('aria-current');
  }

  /** Reads and renders the list. Calls during a refresh cause one more refresh. */
  async refresh() {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    try {
      do {
        this.#again = false;
        await this.#read();
      } while (this.#again);
    } finally {
      this.#reading = false;
    }
  }

  /** The states of unfinished runs by session. If a run ends while it is read, returns the previous states. */
  async #unfinished(all) {
    if (!all.some((one) => one.pendingRuns > 0)) return new Map();
    try {
      return new Map((await this.#db.pendingRuns()).map((run) => [run.session, run.state]));
    } catch {
      return this.#states;
    }
  }

  async #read() {
    const [archived, text] = [this.#showsArchived, this.#text];
    const { hits, cursor } = text ? await this.#find(text, archived) : await this.#all(archived);
    const state = await this.#unfinished(hits.map(({ session }) => session));
    if (archived !== this.#showsArchived || text !== this.#text) return; // the other list is read next
    this.#states = state;
    const rows = hits.map((hit) => this.#update(hit, state.get(hit.session.id)));
    const known = new Set(hits.map(({ session }) => session.id));
    for (const id of this.#rows.keys()) if (!known.has(id)) this.#rows.delete(id);
    this.#paint(rows.length ? rows : [el('li.none', {}, nothing(text, archived))]);
    this.#more.hidden = cursor === null;
    this.#found.textContent = text ? countOf(rows.length, cursor) : '';
  }

  async #all(archived) {
    const { items, cursor } = await this.#db.sessions({ limit: this.#limit, archived });
    return { hits: items.map((session) => ({ session, title: null, messages: [] })), cursor };
  }

  /** A page of a search may be empty although another one follows. */
  async #find(text, archived) {
    const hits = [];
    let cursor;
    do {
      const limit = Math.min(this.#limit - hits.length, 100);
      const page = await this.#db.search(text, { limit, archived, ...(cursor && { cursor }) });
      hits.push(...page.items);
      cursor = page.cursor;
    } while (cursor && hits.length < this.#limit && text === this.#text);
    return { hits, cursor };
  }

  #update({ session: { id, title, updatedAt, archived, preview }, title: found, messages }, state) {
    const row = this.#rows.get(id) ?? this.#row(id);
    this.#rows.set(id, row);
    const name = title || 'Untitled';
    row.title.replaceChildren(...(found ? marked(found) : [name]));
    row.excerpt.replaceChildren(...(messages[0] ? marked(messages[0]) : [preview?.text ?? '']));
    row.excerpt.hidden = !row.excerpt.textContent;
    row.time.textContent = shortTime(updatedAt);
    row.time.dateTime = dateOf(updatedAt)?.toISOString() ?? '';
    row.badge.textContent = BADGES[state] ?? '';
    row.badge.hidden = !row.badge.textContent;
    row.badge.dataset.state = state ?? '';
    row.name = name;
    row.isArchived = archived;
    row.archive.setAttribute('aria-label', archived ? `Move "${name}" out of the archive` : `Archive "${name}"`);
    row.remove.setAttribute('aria-label', `Delete "${name}"`);
    this.#mark(id, row);
    return row.node;
  }

  #paint(nodes) {
    const current = [...this.#list.children];
    if (current.length === nodes.length && current.every((node, at) => node === nodes[at])) return;
    const focused = document.activeElement;
    const at = current.findIndex((node) => node.contains(focused));
    this.#list.replaceChildren(...nodes);
    if (focused === document.activeElement) return;
    // The row with the focus is gone: the one in its place gets it.
    const next = focused.isConnected ? focused : nodes[Math.min(at, nodes.length - 1)].querySelector('.session');
    (next ?? document.querySelector('[name=list]:checked')).focus();
  }

  #row(id) {
    const title = el('span.session-title');
    const time = el('time');
    const badge = el('span.badge', { hidden: true });
    const excerpt = el('span.session-excerpt');
    const open = el('button.session', { type: 'button' }, title, excerpt, el('span.session-facts', {}, time, badge));
    const archive = el('button.plain', { type: 'button' }, icon('archive'));
    const remove = el('button.plain.remove', { type: 'button' }, icon('bin'));
    open.addEventListener('click', () => this.#actions.open(id));
    const node = el('li', {}, open, el('span.row-actions', {}, archive, remove));
    node.dataset.session = id;
    const row = { node, open, title, excerpt, time, badge, archive, remove, name: '', isArchived: false };
    remove.addEventListener('click', () => this.#actions.remove(id, row.name));
    archive.addEventListener('click', () => this.#actions.archive(id, row.name, !row.isArchived));
    return row;
  }
}

/** The nodes of an excerpt, with what was found in marks. */
function marked({ text, ranges }) {
  const nodes = [];
  let end = 0;
  for (const [from, to] of ranges) {
    nodes.push(text.slice(end, from), el('mark', {}, text.slice(from, to)));
    end = to;
  }
  return [...nodes, text.slice(end)];
}

function nothing(text, archived) {
  if (text) return archived ? 'No archived chat has these words.' : 'No chat has these words.';
  return archived ? 'No chat is archived.' : 'No chat is stored yet.';
}

const countOf = (count, cursor) => `${count === 1 ? '1 chat' : `${count} chats`}${cursor ? ' and more' : ''}`;

/** The footer: the size of the store, and whether the browser may delete it. */
export class StoreStatus {
  #db;
  #root = document.querySelector('#store');
  #facts = el('p');
  #keep = el(
    'button.quiet',
    { type: 'button', title: 'Asks the browser not to delete this when the disk is full' },
    'Keep it safe',
  );

  constructor(db) {
    this.#db = db;
    this.#root.append(this.#facts, this.#keep);
    this.#keep.addEventListener('click', async () => {
      const granted = await db.persist();
      await this.refresh();
      if (!granted) this.#facts.textContent += ' · the browser declined';
    });
  }

  async refresh() {
    const { store, persisted, usageBytes, quotaBytes, state } = await this.#db.status();
    const facts = [store === 'indexeddb' ? 'Stored in this browser' : 'In memory only: lost when the tab closes'];
    if (usageBytes !== null)
      facts.push(quotaBytes ? `${bytes(usageBytes)} of ${bytes(quotaBytes)}` : bytes(usageBytes));
    if (persisted !== null) facts.push(persisted ? 'kept safe' : 'may be deleted when the disk is full');
    if (state !== 'ready') facts.push(state);
    this.#facts.textContent = facts.join(' · ');
    this.#keep.hidden = persisted !== false;
  }
}
