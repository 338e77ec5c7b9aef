// A place for a chat that a provider refuses, and for what the provider said: explained by the rules, and repaired.

import { heal, repair, validate } from 'rethread';
import { bytes, counted, el, failure } from './dom.js';
import { findingList, ruleNode } from './findings.js';
import { readPasted } from './pasted-chat.js';
import { requestItems } from './request-description.js';
import { DIALECTS, inline, loadRules, sectionOf } from './rules.js';
import { download } from './session-files.js';
import { WIRE_FORMATS } from './wire-formats.js';

const nameOf = (dialect) => WIRE_FORMATS[dialect]?.name ?? 'Bedrock';

/** Examples of the pages of rules: the dialect, the code, and the blocks that go into the two fields. */
const EXAMPLES = [
  { label: 'A call without a result', dialect: 'openai-chat', code: 'dangling_call', chat: 'broken' },
  {
    label: 'A refused request and the error',
    dialect: 'anthropic',
    code: 'thinking_bound',
    chat: 'sent',
    answer: 'answer',
  },
];

const block = (section, name) =>
  new RegExp(`^\`\`\`json ${name}\\n([\\s\\S]*?)\\n\`\`\`$`, 'm').exec(section)?.[1] ?? '';

/** "2 errors and 1 warning", or "nothing wrong". */
function summary(findings) {
  const of = (severity) => findings.filter((finding) => finding.severity === severity).length;
  const parts = [
    [of('error'), 'error'],
    [of('warning'), 'warning'],
    [of('info'), 'note'],
  ].filter(([count]) => count > 0);
  return parts.map(([count, noun]) => counted(count, noun)).join(', ') || 'nothing wrong';
}

export class Repair {
  #actions;
  #chat = el('textarea', { id: 'pasted-chat', rows: 8, spellcheck: false, placeholder: '{"messages": [ … ]}' });
  #answer = el('textarea', {
    id: 'pasted-answer',
    rows: 3,
    spellcheck: false,
    placeholder: 'messages.3.content.0: Invalid `signature` in …',
  });
  #dialect = el(
    'select',
    { id: 'pasted-dialect' },
    el('option', { value: '' }, 'Recognize it'),
    ...DIALECTS.map((dialect) => el('option', { value: dialect }, nameOf(dialect))),
  );
  #result = el('section.repair-result', { 'aria-label': 'Result' });

  constructor(root, actions) {
    this.#actions = actions;
    const form = el(
      'form.repair',
      {},
      el(
        'p.soft',
        {},
        'Paste a request that a provider refuses, its messages, or only the error. Nothing leaves this page.',
      ),
      el('label', { for: 'pasted-chat' }, 'The chat'),
      this.#chat,
      el('label', { for: 'pasted-answer' }, 'What the provider said (optional)'),
      this.#answer,
      el('div.field-line', {}, el('label', { for: 'pasted-dialect' }, 'Wire format'), this.#dialect),
      el(
        'div.actions',
        {},
        el('button.primary', { type: 'submit' }, 'Explain and repair'),
        ...EXAMPLES.map((one) => this.#exampleButton(one)),
      ),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#work();
    });
    root.append(form, this.#result);
  }

  /** Shows nothing of the chat that is open. */
  paint() {}
  clear() {}

  #exampleButton({ label, dialect, code, chat, answer }) {
    const button = el('button.quiet', { type: 'button' }, `Example: ${label}`);
    button.addEventListener('click', () =>
      this.#try(async () => {
        const section = sectionOf(await loadRules(), code, dialect);
        this.#chat.value = block(section, chat);
        this.#answer.value = answer ? block(section, answer) : '';
        this.#dialect.value = '';
        this.#result.replaceChildren();
        this.#chat.focus();
      }),
    );
    return button;
  }

  #work() {
    return this.#try(async () => {
      const rules = await loadRules();
      const [chat, answer] = [this.#chat.value.trim(), this.#answer.value.trim()];
      if (!chat && !answer) return this.#show('Nothing was pasted.', []);
      const found = chat ? readPasted(chat, this.#dialect.value || null) : { form: 'error', text: answer };
      if (found.form === 'body') return this.#showBody(found, answer, rules);
      if (found.form === 'unknown') return this.#show('The wire format cannot be recognized. Choose it above.', []);
      if (found.form === 'broken') {
        const [{ message }] = validate(found.text, this.#dialect.value || 'openai-chat');
        return this.#show('This is not JSON.', [el('p', {}, message)]);
      }
      return this.#showError(found.text, rules, this.#dialect.value || undefined);
    });
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      this.#show('This cannot be repaired.', [failure(error)]);
    }
  }

  /** The result begins with a heading, which gets the focus. */
  #show(title, nodes) {
    const heading = el('h3', { tabIndex: -1 }, title);
    this.#result.replaceChildren(heading, ...nodes);
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: 'nearest' });
  }

  /** The rules that an error is about, opened or not. */
  #errorNodes(text, rules, dialect, isOpen) {
    return rules.rulesIn(text, dialect).map(({ dialect: name, code }) => {
      const node = ruleNode(code, name);
      node.open = isOpen;
      return el(
        'div.known-error',
        {},
        el('p', {}, 'The error is known of ', el('strong', {}, nameOf(name)), ':'),
        node,
      );
    });
  }

  #showError(text, rules, dialect) {
    const nodes = this.#errorNodes(text, rules, dialect, true);
    this.#show(
      nodes.length ? 'This error is known.' : 'This is no chat, and no error that the rules know.',
      nodes.length
        ? [...nodes, el('p.soft', {}, 'With the request above, the error is repaired, too.')]
        : [el('p.soft', {}, 'Paste the body of the request as JSON, or the sentence of the provider.')],
    );
  }

  #showBody({ text, dialect, why }, answer, rules) {
    const broken = validate(text, dialect);
    const healed = answer ? heal(text, dialect, answer) : null;
    const { body, report } = healed ?? repair(text, dialect);
    const left = validate(body, dialect).filter(({ severity }) => severity === 'error').length;
    const notes = [
      why ? `Read as ${nameOf(dialect)}, because ${why}.` : '',
      healed ? 'The error names what is refused, and exactly that is repaired.' : '',
      answer && !healed
        ? 'Of this error nothing follows for this request: it is not known, or the repair changes nothing.'
        : '',
      left ? `${counted(left, 'error')} cannot be repaired.` : '',
    ];
    this.#show(`${nameOf(dialect)}: ${summary(healed ? report : broken)}`, [
      el('p.soft', {}, ...inline(notes.filter(Boolean).join(' '))),
      ...(answer ? this.#errorNodes(answer, rules, dialect, false) : []),
      el(
        'div.side-by-side',
        {},
        el(
          'section',
          {},
          el('h4', {}, 'What is wrong, and what was done'),
          report.length
            ? findingList(report, dialect)
            : el('p.soft', {}, 'The provider accepts it. Nothing was changed.'),
        ),
        this.#bodyNode(text, body, dialect),
      ),
    ]);
  }

  #bodyNode(text, body, dialect) {
    const before = new Set(requestItems(JSON.parse(text)).map(({ key }) => key));
    const items = requestItems(JSON.parse(body));
    const button = (label, work) => {
      const node = el('button.quiet', { type: 'button' }, label);
      node.addEventListener('click', () => this.#try(work));
      return node;
    };
    return el(
      'section',
      {},
      el(
        'h4',
        {},
        body === text
          ? 'The body'
          : `The repaired body: ${counted(items.length, 'item')}, ${bytes(new TextEncoder().encode(body).length)}`,
      ),
      el(
        'ol.items',
        {},
        ...items.map(({ label, text: said, key }) =>
          el(
            `li${before.has(key) ? '' : '.changed'}`,
            {},
            el('span.item-label', {}, label),
            el('span.item-text', {}, said),
            before.has(key) ? '' : el('span.tag', {}, 'changed'),
          ),
        ),
      ),
      el(
        'details',
        { open: true },
        el('summary', {}, 'As JSON'),
        el('pre.repaired', { tabIndex: 0 }, JSON.stringify(JSON.parse(body), null, 2)),
      ),
      el(
        'div.actions',
        {},
        button('Download', () => download('repaired.json', body, 'application/json')),
        button('Open it as a chat', () => this.#actions.openBody(body, dialect)),
      ),
    );
  }
}
