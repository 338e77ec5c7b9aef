// The model, its endpoint and key. The key is kept in this object only and sent in the request's header only.

import { WIRE_FORMATS } from './wire-formats.js';

/** A URL with a query, a fragment or a user name may contain a key, so it is not stored. */
function isPlain(address) {
  const { search, hash, username, password } = URL.canParse(address) ? new URL(address) : {};
  return !search && !hash && !username && !password;
}

export class Settings {
  #keys = Object.fromEntries(Object.keys(WIRE_FORMATS).map((dialect) => [dialect, '']));
  #store;
  #base;
  #values = { dialect: 'openai-chat', stream: true, hostile: false, endpoints: {}, models: {} };

  /** `store`: the name under which everything except the keys is stored. `lane`: a separate lane of the stand-in. */
  constructor({ store, lane }) {
    this.#store = `rethread-demo:${store}`;
    this.#base = new URL(lane ? `/lane/${encodeURIComponent(lane)}/` : '/', location.href).href;
    try {
      Object.assign(this.#values, JSON.parse(localStorage.getItem(this.#store) ?? '{}'));
    } catch {
      // Unreadable, or no storage: use the defaults.
    }
    if (!Object.hasOwn(WIRE_FORMATS, this.#values.dialect)) this.#values.dialect = 'openai-chat';
  }

  get dialect() {
    return this.#values.dialect;
  }

  get stream() {
    return this.#values.stream;
  }

  get hostile() {
    return this.#values.hostile;
  }

  defaultEndpoint(dialect = this.dialect) {
    return this.#base + WIRE_FORMATS[dialect].path;
  }

  of(dialect) {
    return {
      endpoint: this.#values.endpoints[dialect] ?? '',
      model: this.#values.models[dialect] ?? '',
      key: this.#keys[dialect],
    };
  }

  get model() {
    return this.of(this.dialect).model || 'stand-in';
  }

  /** The name of the wire format. */
  get format() {
    return WIRE_FORMATS[this.dialect].name;
  }

  /** True if a service of the wire format can own a conversation. */
  get keepsConversations() {
    return Boolean(WIRE_FORMATS[this.dialect].keepsConversations);
  }

  get isStandIn() {
    return !this.of(this.dialect).endpoint;
  }

  /** The stand-in's counter of tool runs. */
  get counter() {
    return this.isStandIn ? `${this.#base}control/tool` : null;
  }

  /** The `provider` of `Session.run` and `Session.resume`. It contains no secret, because it is stored with the run. */
  get provider() {
    const { dialect, stream, model } = this;
    const { url, params } = WIRE_FORMATS[dialect];
    const endpoint = this.of(dialect).endpoint || this.defaultEndpoint();
    return { dialect, url: url?.(endpoint, this) ?? endpoint, stream, params: { model, ...params } };
  }

  /** The `headers` of `drive`, called for each model call. */
  headers = ({ dialect }) => {
    const key = this.#keys[dialect];
    if (!key) return {};
    return WIRE_FORMATS[dialect].headers?.(key) ?? { authorization: `Bearer ${key}` };
  };

  /** Begins a conversation at the service, and returns its id. */
  async beginConversation() {
    const { dialect } = this;
    const url = new URL(this.of(dialect).endpoint || this.defaultEndpoint());
    url.pathname = url.pathname.replace(/\/responses\/?$/, '/conversations');
    const headers = { 'content-type': 'application/json', ...this.headers({ dialect }) };
    const response = await fetch(url, { method: 'POST', headers, body: '{}', redirect: 'error' });
    const { id, error } = await response.json().catch(() => ({}));
    if (!response.ok || typeof id !== 'string')
      throw new Error(
        `The service did not begin a conversation (status ${response.status})${error?.message ? `: ${error.message}` : '.'}`,
      );
    return id;
  }

  offerHostile() {
    this.#values.hostile = true;
    this.#save();
  }

  apply({ dialect, stream, hostile, drafts }) {
    Object.assign(this.#values, { dialect, stream, hostile });
    for (const [name, { endpoint, model, key }] of Object.entries(drafts)) {
      this.#values.endpoints[name] = endpoint.trim();
      this.#values.models[name] = model.trim();
      this.#keys[name] = key.trim();
    }
    this.#save();
  }

  #save() {
    try {
      const endpoints = Object.entries(this.#values.endpoints).filter(([, address]) => isPlain(address));
      localStorage.setItem(this.#store, JSON.stringify({ ...this.#values, endpoints: Object.fromEntries(endpoints) }));
    } catch {
      // Without storage the settings last as long as the page.
    }
  }
}

/** The dialog. Each wire format has its own endpoint, model and key. */
export function settingsDialog(settings, changed) {
  const dialog = document.querySelector('#settings');
  const form = dialog.querySelector('form');
  for (const [dialect, { name }] of Object.entries(WIRE_FORMATS)) {
    const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'dialect', value: dialect });
    const label = document.createElement('label');
    label.append(radio, ` ${name}`);
    form.querySelector('.choice').append(label);
  }
  const fields = form.elements;
  const hint = form.querySelector('#endpoint-hint');
  const standInHint = hint.textContent;
  let drafts;
  let shown;

  const readFields = () => {
    drafts[shown] = { endpoint: fields.endpoint.value, model: fields.model.value, key: fields.key.value };
  };
  const show = (dialect) => {
    shown = dialect;
    for (const name of ['endpoint', 'model', 'key']) fields[name].value = drafts[dialect][name];
    hint.textContent = [standInHint, WIRE_FORMATS[dialect].endpointHint].join(' ').trim();
    fields.endpoint.placeholder = settings.defaultEndpoint(dialect);
    fields.model.placeholder = 'stand-in';
  };

  for (const radio of fields.dialect) {
    radio.addEventListener('change', () => {
      readFields();
      show(radio.value);
    });
  }
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'apply') {
      readFields();
      settings.apply({ dialect: shown, stream: fields.stream.checked, hostile: fields.hostile.checked, drafts });
      changed();
    }
    fields.key.value = '';
    dialog.returnValue = '';
  });
  // Enter in a field applies the settings, although Cancel is the first button.
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.target.tagName !== 'INPUT') return;
    event.preventDefault();
    form.requestSubmit(form.querySelector('[value=apply]'));
  });

  return {
    open() {
      drafts = Object.fromEntries(Object.keys(WIRE_FORMATS).map((dialect) => [dialect, settings.of(dialect)]));
      fields.dialect.value = settings.dialect;
      fields.stream.checked = settings.stream;
      fields.hostile.checked = settings.hostile;
      show(settings.dialect);
      dialog.returnValue = '';
      dialog.showModal();
    },
  };
}
