// The list of stored chats, and the status of the store.

import { bytes, dateOf, el, icon, shortTime } from './dom.js';

const BADGES = { live: 'running', interrupted: 'interrupted', failed: 'failed' };

export class Sessions {
  #db;
  #list = document.querySelector('#sessions');
  #actions;
  #rows = new Map();
  #current = null;
  #states = new Map();
  #reading = false;
  #again = false;

  /** `actions`: `{ open(id), remove(id, title) }`. */
  constructor(db, actions) {
    this.#db = db;
    this.#actions = actions;
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
    const all = [];
    let cursor = null;
    do {
      const page = await this.#db.sessions({ limit: 200, ...(cursor ? { cursor } : {}) });
      all.push(...page.items);
      cursor = page.cursor;
    } while (cursor);
    const state = await this.#unfinished(all);
    this.#states = state;
    const rows = all.map((one) => {
      const row = this.#rows.get(one.id) ?? this.#row(one.id);
      this.#rows.set(one.id, row);
      const title = one.title || 'Untitled';
      row.title.textContent = title;
      row.time.textContent = shortTime(one.updatedAt);
      row.time.dateTime = dateOf(one.updatedAt)?.toISOString() ?? '';
      row.badge.textContent = BADGES[state.get(one.id)] ?? '';
      row.badge.hidden = !row.badge.textContent;
      row.badge.dataset.state = state.get(one.id) ?? '';
      row.remove.setAttribute('aria-label', `Delete "${title}"`);
      this.#mark(one.id, row);
      return row.node;
    });
    const known = new Set(all.map(({ id }) => id));
    for (const id of this.#rows.keys()) if (!known.has(id)) this.#rows.delete(id);
    this.#paint(rows.length ? rows : [el('li.none', {}, 'No chat is stored yet.')]);
  }

  #paint(nodes) {
    const current = [...this.#list.children];
    if (current.length === nodes.length && current.every((node, at) => node === nodes[at])) return;
    const focused = document.activeElement;
    this.#list.replaceChildren(...nodes);
    if (focused !== document.activeElement && focused?.isConnected) focused.focus();
  }

  #row(id) {
    const title = el('span.session-title');
    const time = el('time');
    const badge = el('span.badge', { hidden: true });
    const open = el('button.session', { type: 'button' }, title, el('span.session-facts', {}, time, badge));
    const remove = el('button.plain.remove', { type: 'button' }, icon('bin'));
    open.addEventListener('click', () => this.#actions.open(id));
    remove.addEventListener('click', () => this.#actions.remove(id, title.textContent));
    const node = el('li', {}, open, remove);
    node.dataset.session = id;
    return { node, open, title, time, badge, remove };
  }
}

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
