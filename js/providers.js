// History providers (R33 to R35): sources of messages beside the session's log, and stores of an application that get
// each turn.

import { RethreadError } from './error.js';
import { isList, memberOf, reasonOf } from './untrusted-value.js';
import { plainMessages } from './input.js';

const FLAGS = ['loadMessages', 'storeInputs', 'storeOutputs', 'storeContextMessages'];
const FUNCTIONS = ['provide', 'store', 'filterProvided', 'filterStored'];
const MEMBERS = ['name', 'stateKey', 'storeContextFrom', ...FLAGS, ...FUNCTIONS];

/** @type {(code: import('./types.js').ErrorCode, message: string) => never} */
const fail = (code, message) => {
  throw new RethreadError(code, message);
};
const isName = (value) => typeof value === 'string' && value !== '';
/** The letters of a name without case and plural. */
const lettersOf = (name) => name.toLowerCase().replaceAll(/[^a-z]|s\b/g, '');
const LETTERS = MEMBERS.map(lettersOf);
/** A provider may have members of its own. One that is an option except for its spelling is rejected. */
const isMisspelt = (member) => !MEMBERS.includes(member) && LETTERS.includes(lettersOf(member));

/** One provider with its options. The provider may be an instance of a class, so its functions are called as
 *  methods. */
class HistoryProvider {
  #provider;

  constructor(provider, index) {
    if (typeof provider !== 'object' || provider === null)
      fail('config_invalid', `\`providers[${index}]\` must be an object`);
    this.#provider = provider;
    this.name = memberOf(provider, 'name');
    if (!isName(this.name)) fail('config_invalid', `\`providers[${index}].name\` must be a string that is not empty`);
    const unknown = Object.keys(provider).find(isMisspelt);
    if (unknown)
      fail(
        'config_invalid',
        `\`providers[${index}].${unknown}\` is not an option of this version; known here: \`${MEMBERS.join('`, `')}\``,
      );
    const option = (member, isValid, requirement) => {
      const value = memberOf(provider, member) ?? undefined;
      if (value !== undefined && !isValid(value))
        fail('config_invalid', `\`providers[${index}].${member}\` must be ${requirement}`);
      return value;
    };
    for (const member of FUNCTIONS) option(member, (value) => typeof value === 'function', 'a function');
    const [loads, storesInputs, storesOutputs, storesContext] = FLAGS.map((flag) =>
      option(flag, (value) => typeof value === 'boolean', 'true or false'),
    );
    const contextFrom = option(
      'storeContextFrom',
      (value) => isList(value) && value.every(isName),
      'a list of names of providers',
    );
    this.stateKey = option('stateKey', isName, 'a string that is not empty') ?? this.name;
    this.loads = loads ?? false;
    this.storesInputs = storesInputs ?? true;
    this.storesOutputs = storesOutputs ?? true;
    this.storesContext = storesContext ?? contextFrom !== undefined;
    this.contextFrom = contextFrom && [...contextFrom];
  }

  has(member) {
    return typeof memberOf(this.#provider, member) === 'function';
  }

  /** The messages that it provides, filtered. */
  async provide(session, input) {
    const returned = await this.#provider.provide({ session, input });
    const messages = await plainMessages(this.#filtered('filterProvided', 'provide', returned ?? []));
    JSON.stringify(messages); // throws for cycles and big integers, while it is known whose they are
    return messages;
  }

  async store(session, { context, input, output, error }) {
    const isWanted = ({ id }) =>
      this.storesContext && (this.contextFrom ? this.contextFrom.includes(id) : id !== this.name);
    const selected = (messages, isStored) =>
      messages.filter(({ source }) => (source.type === 'context' ? isWanted(source) : isStored));
    const filtered = (messages) => this.#filtered('filterStored', 'filterStored', messages);
    const inputs = selected([...context, ...input], this.storesInputs);
    const turn = { session, input: filtered(inputs), output: filtered(selected(output, this.storesOutputs)) };
    await this.#provider.store(error ? { ...turn, error: new RethreadError(error.code, error.message) } : turn);
  }

  #filtered(filter, source, messages) {
    const check = (name, list) =>
      isList(list) ? list : fail('callback_failed', `\`${name}\` must return a list of messages`);
    return this.has(filter) ? check(filter, this.#provider[filter](check(source, messages))) : check(source, messages);
  }
}

/** The providers of a session or of a run, in their order. */
export class HistoryProviders {
  #list;

  /** `ownHistory` names what has the history that requests contain without providers, if anything has. */
  constructor(providers, ownHistory) {
    if (!isList(providers)) fail('config_invalid', '`providers` must be a list');
    this.#list = Array.from(providers, (provider, index) => new HistoryProvider(provider, index));
    this.#checkNames();
    this.#checkLoaders(ownHistory);
  }

  #checkLoaders(ownHistory) {
    const loaders = this.#list.filter(({ loads }) => loads).map(({ name }) => `"${name}"`);
    if (loaders.length + (ownHistory ? 1 : 0) > 1 && loaders.length > 0) {
      const others = [...loaders, ...(ownHistory ? [ownHistory] : [])];
      fail(
        'two_loaders',
        `${others.join(' and ')} load the history, so the model would get it twice; leave \`loadMessages\` of all but one out`,
      );
    }
  }

  #checkNames() {
    const names = new Set();
    const keys = new Map();
    for (const { name, stateKey } of this.#list) {
      if (keys.has(stateKey))
        fail(
          'state_key_conflict',
          `the history providers "${keys.get(stateKey)}" and "${name}" have the state key "${stateKey}"; give one of them another \`stateKey\``,
        );
      if (names.has(name))
        fail(
          'config_invalid',
          `two history providers have the name "${name}"; messages are stamped with it, so give one of them another`,
        );
      names.add(name);
      keys.set(stateKey, name);
    }
  }

  /** The functions that the core calls; none if there are no providers. The owner, and so `ownHistory`, may have
   *  changed. `loads`: a provider may load. */
  hooks(session, ownHistory, loads) {
    if (this.#list.length === 0) return undefined;
    this.#checkLoaders(ownHistory);
    return { provide: (input) => this.#provide(session, input, loads), ...this.storeHook(session) };
  }

  /** The function that gets what an append has stored; none if no provider stores. */
  storeHook(session) {
    if (!this.#list.some((one) => one.has('store'))) return undefined;
    return { store: (turn) => this.#store(session, turn) };
  }

  /** Returns what the providers provide: the history that one loads, then the context in their order. Nothing is loaded
   *  where a service has the history. */
  async #provide(session, input, loads) {
    const provided = [];
    const asked = this.#list.filter((one) => one.has('provide') && (loads || !one.loads));
    for (const provider of asked.sort((one, other) => Number(other.loads) - Number(one.loads))) {
      try {
        const messages = await provider.provide(session, structuredClone(input));
        provided.push({ provider: provider.name, loads: provider.loads, messages });
      } catch (cause) {
        throw new RethreadError(
          'callback_failed',
          `\`provide\` of the history provider "${provider.name}" failed, so nothing was sent or stored: ${reasonOf(cause)}`,
          {},
          { cause },
        );
      }
    }
    return provided;
  }

  /** Gives the turn, or what was appended, to each provider. Returns a sentence for each that failed. What was loaded
   *  is not stored again. */
  async #store(session, { context, input, output, error }) {
    const failures = [];
    const isNew = ({ source }) => source.type !== 'history';
    const turn = { context: context.filter(isNew), input: input.filter(isNew), output: output.filter(isNew), error };
    if (!error && turn.input.length + turn.output.length === 0) return failures;
    for (const provider of this.#list.filter((one) => one.has('store'))) {
      try {
        await provider.store(session, structuredClone(turn));
      } catch (cause) {
        failures.push(
          `\`store\` of the history provider "${provider.name}" failed; the session's own history is not affected: ${reasonOf(cause)}`,
        );
      }
    }
    return failures;
  }
}
