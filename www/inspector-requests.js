// What would be sent in each wire format, and why: the report beside the body, and what the last request had already.

import { open } from 'rethread';
import { bytes, clip, counted, el, failure, throttled } from './dom.js';
import { findingList, outcomes } from './findings.js';
import { requestItems } from './request-description.js';
import { DIALECTS } from './rules.js';
import { toolsFor } from './tools.js';
import { WIRE_FORMATS } from './wire-formats.js';

const SENT = 'sent';
const encoder = new TextEncoder();
const sizeOf = (text) => encoder.encode(text).length;
const nameOf = (dialect) => WIRE_FORMATS[dialect]?.name ?? 'Bedrock';

/** The items of a body with their sizes, and which of them the body before had at its beginning. */
export function itemsOf(text, before) {
  const items = requestItems(JSON.parse(text));
  const earlier = before ? requestItems(JSON.parse(before)) : [];
  let repeated = 0;
  while (repeated < items.length && items[repeated].key === earlier[repeated]?.key) repeated += 1;
  const sized = items.map((item, at) => ({ ...item, bytes: sizeOf(item.key), isRepeated: at < repeated }));
  const repeatedBytes = sized.slice(0, repeated).reduce((sum, item) => sum + item.bytes, 0);
  return { items: sized, repeated, repeatedBytes };
}

function itemNode({ label, text, bytes: size, isRepeated, key }) {
  return el(
    `li${isRepeated ? '.repeated' : ''}`,
    {},
    el(
      'details',
      {},
      el(
        'summary',
        {},
        el('span.item-label', {}, label),
        el('span.item-text', {}, clip(text, 90)),
        el('span.tag', {}, isRepeated ? 'repeated' : 'new'),
        el('span.item-size', {}, bytes(size)),
      ),
      el('pre', { tabIndex: 0 }, JSON.stringify(JSON.parse(key), null, 2)),
    ),
  );
}

export class Requests {
  #actions;
  #db = null;
  #rows = el('tbody');
  #asked = el('p.soft');
  #detail = el('section.request-detail', { 'aria-label': 'The chosen request' });
  #chosen = SENT;
  #entries = [];
  #painted = '';
  #read = throttled(
    (chat) => this.#readAll(chat),
    300,
    (error) => {
      this.clear();
      this.#detail.replaceChildren(failure(error));
    },
  );

  constructor(root, actions) {
    this.#actions = actions;
    const heads = ['Wire format', 'Items', 'Size', 'Repeated', 'Report'];
    root.append(
      this.#asked,
      el(
        'div.wide-table',
        { tabIndex: 0, role: 'region', 'aria-label': 'Requests' },
        el(
          'table.requests',
          {},
          el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', { scope: 'col' }, head)))),
          this.#rows,
        ),
      ),
      this.#detail,
    );
  }

  /** Removes what is shown; the next `paint` reads. */
  clear() {
    this.#painted = '';
    this.#entries = [];
    for (const node of [this.#asked, this.#rows, this.#detail]) node.replaceChildren();
  }

  /** Closes the store of the previews. */
  close() {
    const opening = this.#db;
    this.#db = null;
    opening?.then(
      (db) => db.close(),
      () => {}, // shown by the read that opened it
    );
  }

  paint(chat) {
    const question = this.#actions.question();
    const { revision, branch } = chat.view.getSnapshot();
    const { settings } = this.#actions;
    const { dialect, hostile, model } = settings;
    const models = DIALECTS.map((one) => settings.of(one).model);
    const sent = chat.requests.length;
    const key = JSON.stringify([revision, branch, chat.owner, question, sent, dialect, hostile, model, models]);
    if (key === this.#painted) return;
    this.#painted = key;
    this.#read(chat);
  }

  async #readAll(chat) {
    const question = this.#actions.question();
    const sent = chat.requests.at(-1);
    const previews = await this.#render(chat, question);
    this.#asked.textContent = !previews
      ? 'Another tab shows another version of this chat, so there is no preview. Choose a version here, and there is one.'
      : question
        ? `What would be sent with the question that you are writing: "${clip(question, 60)}"`
        : 'What would be sent now. Write a question, and it is in the requests.';
    this.#entries = [
      ...(sent
        ? [
            {
              id: SENT,
              name: `Sent last (${nameOf(sent.dialect)})`,
              dialect: sent.dialect,
              ...sent,
              before: chat.requests.at(-2),
            },
          ]
        : []),
      ...(previews ?? []).map((preview) => ({
        ...preview,
        id: preview.dialect,
        name: nameOf(preview.dialect),
        before: chat.requests.findLast(({ dialect }) => dialect === preview.dialect),
      })),
    ].map((entry) =>
      entry.text === undefined
        ? entry
        : { ...entry, ...itemsOf(entry.text, entry.before?.dialect === entry.dialect ? entry.before.text : null) },
    );
    if (!this.#entries.some(({ id }) => id === this.#chosen)) this.#chosen = this.#entries[0]?.id ?? SENT;
    this.#paintRows();
  }

  /** The request of each dialect, of a session of its own: what the open one sends stays what it repeats. Null if it
   *  opens with another branch than the one that is shown. */
  async #render(chat, question) {
    this.#db ??= open({ name: this.#actions.store }).catch((error) => {
      this.#db = null; // a later attempt may succeed
      throw error;
    });
    const session = await (await this.#db).session(chat.id);
    const { settings } = this.#actions;
    try {
      if (session.branch !== chat.view.getSnapshot().branch) return null;
      const previews = [];
      for (const dialect of DIALECTS) {
        const params = { model: settings.of(dialect).model || settings.model, ...WIRE_FORMATS[dialect]?.params };
        const tools = toolsFor({ hostile: settings.hostile, counter: null });
        previews.push(
          await session.render({ dialect, params, tools, ...(question && { input: question }) }).then(
            ({ body, report }) => ({ dialect, report, text: new TextDecoder().decode(body) }),
            (error) => ({ dialect, report: [], error: error?.message ?? String(error) }),
          ),
        );
      }
      return previews;
    } finally {
      session[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
    }
  }

  #paintRows() {
    const focused = document.activeElement?.closest?.('.requests button')?.value;
    this.#rows.replaceChildren(...this.#entries.map((entry) => this.#row(entry)));
    if (focused) this.#rows.querySelector(`button[value="${focused}"]`)?.focus();
    this.#paintDetail();
  }

  #row({ id, name, items, text, repeatedBytes, report, error }) {
    const button = el(
      'button.plain.choice-button',
      { type: 'button', value: id, 'aria-pressed': String(id === this.#chosen) },
      name,
    );
    button.addEventListener('click', () => {
      this.#chosen = id;
      this.#paintRows();
    });
    const found = outcomes(report)
      .map(([outcome, count]) => `${count} ${outcome}`)
      .join(', ');
    const cells = error
      ? ['–', '–', '–', 'cannot be sent']
      : [String(items.length), bytes(sizeOf(text)), bytes(repeatedBytes), found || 'unchanged'];
    const row = el('tr', {}, el('th', { scope: 'row' }, button), ...cells.map((cell) => el('td', {}, cell)));
    row.dataset.request = id;
    return row;
  }

  #paintDetail() {
    const entry = this.#entries.find(({ id }) => id === this.#chosen);
    if (!entry) return this.#detail.replaceChildren();
    const { name, dialect, error, items, repeated, repeatedBytes, report, prefix, text, before } = entry;
    if (error) {
      this.#detail.replaceChildren(el('h3', {}, name), el('p.failed', {}, error));
      return;
    }
    const compared = before?.dialect === dialect;
    const facts = [
      compared
        ? `${counted(repeated, 'item')} (${bytes(repeatedBytes)}) at the beginning are those of the request before.`
        : 'This page has sent no request of this wire format before, so nothing is repeated.',
      prefix
        ? `The run reports ${bytes(prefix.reusedBytes)} repeated${prefix.changedBy ? `; the rest was changed by: ${prefix.changedBy}` : ''}.`
        : '',
    ];
    this.#detail.replaceChildren(
      el('h3', {}, name),
      el('p.soft', {}, facts.filter(Boolean).join(' ')),
      el(
        'div.side-by-side',
        {},
        el(
          'section',
          {},
          el('h4', {}, 'Why it is like this'),
          report.length
            ? findingList(report, dialect)
            : el('p.soft', {}, 'Nothing was repaired, stale, dropped or unbound.'),
        ),
        el(
          'section',
          {},
          el('h4', {}, 'What it contains'),
          el('ol.items', {}, ...items.map(itemNode)),
          el(
            'details',
            {},
            el('summary', {}, 'The whole body'),
            el('pre', { tabIndex: 0 }, JSON.stringify(JSON.parse(text), null, 2)),
          ),
        ),
      ),
    );
  }
}
