// The inspector beside the chat: its tabs, of which only the one that is shown is painted.

import { Journal } from './inspector-journal.js';
import { Repair } from './inspector-repair.js';
import { Requests } from './inspector-requests.js';
import { Sizes } from './inspector-sizes.js';
import { Timeline } from './inspector-timeline.js';

/** On a narrower screen the inspector covers the chat. */
const NARROW = matchMedia('(max-width: 1100px)');
/** On a wider screen it is open at first. */
const WIDE = matchMedia('(min-width: 1400px)');
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

export class Inspector {
  #root = document.querySelector('#inspector');
  #opener = document.querySelector('#inspector-open');
  #tabs = [...document.querySelectorAll('#inspector [role=tab]')];
  #contents;
  #chosen = 'timeline';
  #chat;
  /** The chat of what is shown. */
  #painted = null;

  /** `actions`: `{ chat(), question(), settings, store, status(), openBody(body, dialect) }`. */
  constructor(actions) {
    this.#chat = actions.chat;
    const panel = (name) => document.querySelector(`#panel-${name}`);
    this.#contents = {
      timeline: new Timeline(panel('timeline')),
      requests: new Requests(panel('requests'), actions),
      journal: new Journal(panel('journal')),
      sizes: new Sizes(panel('sizes'), actions),
      repair: new Repair(panel('repair'), actions),
    };
    this.#opener.addEventListener('click', () => this.toggle());
    document.querySelector('#inspector-close').addEventListener('click', () => this.toggle(false));
    this.#tabs.forEach((tab, at) => {
      tab.addEventListener('click', () => this.choose(nameOf(tab)));
      tab.addEventListener('keydown', (event) => this.#move(event, at));
    });
    this.#root.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && NARROW.matches) this.toggle(false);
    });
    NARROW.addEventListener('change', () => this.#cover());
    this.#paintTabs();
    if (WIDE.matches) this.toggle(true, { focus: false });
  }

  get #isOpen() {
    return !this.#root.hidden;
  }

  toggle(open = !this.#isOpen, { focus = true } = {}) {
    this.#root.hidden = !open;
    document.body.classList.toggle('inspecting', open);
    this.#opener.setAttribute('aria-expanded', String(open));
    this.#cover();
    if (open) this.paint();
    else {
      this.#clear();
      this.#contents.requests.close();
    }
    if (focus) (open ? this.#tabs.find((tab) => nameOf(tab) === this.#chosen) : this.#opener).focus();
  }

  /** Closes the inspector if it covers the chat. */
  uncover() {
    if (this.#isOpen && NARROW.matches) this.toggle(false, { focus: false });
  }

  /** What the inspector covers takes no focus. */
  #cover() {
    document.querySelector('main').inert = this.#isOpen && NARROW.matches;
  }

  choose(name) {
    if (name !== this.#chosen) this.#clear();
    this.#chosen = name;
    this.#paintTabs();
    this.paint();
  }

  /** What is not shown is not kept either: it may quote what is erased. */
  #clear() {
    this.#contents[this.#chosen].clear();
  }

  #move(event, at) {
    const count = this.#tabs.length;
    const to = { Home: 0, End: count - 1 }[event.key] ?? (at + (STEPS[event.key] ?? NaN) + count) % count;
    if (Number.isNaN(to)) return;
    event.preventDefault();
    this.#tabs[to].focus();
    this.choose(nameOf(this.#tabs[to]));
  }

  #paintTabs() {
    for (const tab of this.#tabs) {
      const isChosen = nameOf(tab) === this.#chosen;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      document.querySelector(`#panel-${nameOf(tab)}`).hidden = !isChosen;
    }
  }

  /** Paints the chosen tab, if the inspector is open. */
  paint() {
    const chat = this.#chat();
    if (!chat || !this.#isOpen) return;
    if (this.#painted !== chat) this.#clear();
    this.#painted = chat;
    this.#contents[this.#chosen].paint(chat);
  }
}

const nameOf = (tab) => tab.id.slice('tab-'.length);
