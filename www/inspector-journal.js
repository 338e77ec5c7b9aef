// The journal: runs that are not over, what they wait for, and what is stored of them for a crash.

import { bytes, clip, counted, dateOf, el, failure, throttled } from './dom.js';
import { readRecords } from './stored-records.js';

const STATES = {
  live: 'Running in a tab',
  interrupted: 'Interrupted',
  waiting_approval: 'Waits for an approval',
  failed: 'Failed',
};
const CALLS = {
  not_started: 'not started',
  started: 'started',
  answered: 'answered',
  awaiting_approval: 'waits for an approval',
  awaiting_result: 'its result comes later',
};
const time = (ms) => dateOf(ms)?.toLocaleTimeString() ?? '–';

/** A member of an entry in words. */
function memberText([name, value]) {
  if (name === 'at') return `at ${time(value)}`;
  return `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

function facts(pairs) {
  return el(
    'dl.facts',
    {},
    ...pairs
      .filter(([, value]) => value)
      .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  );
}

function effectText(effect) {
  if (effect.type === 'call_model') {
    const { origin, pathname } = new URL(effect.request.url); // a query may have a key
    return `call_model: ${effect.request.method} ${origin}${pathname}, ${bytes(effect.request.body?.length ?? 0)}`;
  }
  if (effect.type === 'run_tool') return `run_tool: ${effect.name}, attempt ${effect.attempt}`;
  return `wait: ${effect.ms} ms`;
}

function runNode({ id, state, startedAt, provider, openCalls, text, error, notBefore, withheld }, active) {
  const effects = active?.id === id ? active.effects() : [];
  const node = el(
    'section.run',
    {},
    el('h3', {}, STATES[state] ?? state),
    facts([
      ['Run', id],
      ['Began', time(startedAt)],
      ['Provider', `${provider.dialect}, ${provider.params.model ?? 'no model'}`],
      ['Not before', notBefore ? time(notBefore) : ''],
      ['Withheld', withheld.join(', ')],
      ['Text so far', clip(text, 120)],
      ['Error', error?.message ?? ''],
    ]),
    ...(openCalls.length
      ? [
          el('h4', {}, 'Calls of its round'),
          el(
            'ul.plain-list',
            {},
            ...openCalls.map((call) => el('li', {}, el('code', {}, call.name), ` ${CALLS[call.state] ?? call.state}`)),
          ),
        ]
      : []),
    ...(effects.length
      ? [
          el('h4', {}, 'Effects that this tab executes now'),
          el('ul.plain-list', {}, ...effects.map((effect) => el('li', {}, effectText(effect)))),
        ]
      : []),
  );
  node.dataset.state = state;
  return node;
}

function entryNode({ line, bytes: size }) {
  const { type, ...rest } = line.entry ?? {};
  return el(
    'li',
    {},
    el('code', {}, type ?? 'entry'),
    el('span.entry-text', {}, clip(Object.entries(rest).map(memberText).join(', '), 160)),
    el('span.item-size', {}, bytes(size)),
  );
}

export class Journal {
  #runs = el('div');
  #entries = el('div');
  #events = el('ol.events');
  #read = throttled(
    (chat) => this.#readAll(chat),
    400,
    (error) => {
      this.clear();
      this.#runs.replaceChildren(failure(error));
    },
  );

  constructor(root) {
    root.append(
      el(
        'p.soft',
        {},
        'A run writes each step to its journal before the next one begins. When its turn is in history, the same append removes the journal.',
      ),
      el('h3', {}, 'Runs that are not over'),
      this.#runs,
      el('h3', {}, 'Stored steps'),
      this.#entries,
      el('h3', {}, 'What the last run of this tab reported'),
      this.#events,
    );
  }

  clear() {
    for (const list of [this.#runs, this.#entries, this.#events]) list.replaceChildren();
  }

  paint(chat) {
    this.#read(chat);
  }

  async #readAll(chat) {
    const [pending, records] = [await chat.pendingRuns(), await readRecords(chat)];
    const journal = records.filter(({ table }) => table === 'runs');
    this.#runs.replaceChildren(
      ...(pending.length
        ? pending.map((run) => runNode(run, chat.activeRun))
        : [el('p.soft', {}, 'None: every turn is in history.')]),
    );
    const runs = new Map();
    for (const record of journal) runs.set(record.line.run, [...(runs.get(record.line.run) ?? []), record]);
    this.#entries.replaceChildren(
      ...(runs.size
        ? [...runs].map(([run, entries]) =>
            el(
              'section.run',
              {},
              el('p.soft', {}, `Run ${run}: ${counted(entries.length, 'step')}`),
              el('ol.entries', {}, ...entries.map(entryNode)),
            ),
          )
        : [el('p.soft', {}, 'None.')]),
    );
    this.#events.replaceChildren(
      ...chat.events.map(({ type, at, count, text }) =>
        el(
          'li',
          {},
          el('time', {}, time(at)),
          el('code', {}, type),
          count > 1 ? ` × ${count} ` : ' ',
          el('span.entry-text', {}, text),
        ),
      ),
    );
  }
}
