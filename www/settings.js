// Which model to ask. The key stays in this object: it is written nowhere and goes out in the request's header only.

const PATHS = { 'openai-chat': 'v1/chat/completions', anthropic: 'v1/messages' };

/** An address with a query or a user may hold a key: it is not kept. */
function isPlain(address) {
  const { search, hash, username, password } = URL.canParse(address) ? new URL(address) : {};
  return !search && !hash && !username && !password;
}

export class Settings {
  #keys = { 'openai-chat': '', anthropic: '' };
  #store;
  #base;
  #values = { dialect: 'openai-chat', stream: true, hostile: false, endpoints: {}, models: {} };

  /** `store`: the name under which all but the keys is kept. `lane`: a part of the stand-in of one's own. */
  constructor({ store, lane }) {
    this.#store = `rethread-demo:${store}`;
    this.#base = new URL(lane ? `/lane/${encodeURIComponent(lane)}/` : '/', location.href).href;
    try {
      Object.assign(this.#values, JSON.parse(localStorage.getItem(this.#store) ?? '{}'));
    } catch {
      // Unreadable, or no storage at all: the defaults are good enough.
    }
    if (!Object.hasOwn(PATHS, this.#values.dialect)) this.#values.dialect = 'openai-chat';
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
    return this.#base + PATHS[dialect];
  }

  of(dialect) {
    return { endpoint: this.#values.endpoints[dialect] ?? '', model: this.#values.models[dialect] ?? '', key: this.#keys[dialect] };
  }

  get model() {
    return this.of(this.dialect).model || 'stand-in';
  }

  get isStandIn() {
    return !this.of(this.dialect).endpoint;
  }

  /** The stand-in's counter of tool runs. */
  get counter() {
    return this.isStandIn ? `${this.#base}control/tool` : null;
  }

  /** What `Session.run` and `Session.resume` take. Nothing secret: it is stored with the run. */
  get provider() {
    const { dialect, stream, model } = this;
    const url = this.of(dialect).endpoint || this.defaultEndpoint();
    return { dialect, url, stream, params: dialect === 'anthropic' ? { model, max_tokens: 2048 } : { model } };
  }

  /** What `drive` takes: asked anew for every call. */
  headers = ({ dialect }) => {
    const key = this.#keys[dialect];
    if (!key) return {};
    return dialect === 'anthropic' ? { 'x-api-key': key, 'anthropic-dangerous-direct-browser-access': 'true' } : { authorization: `Bearer ${key}` };
  };

  offerHostile() {
    this.#values.hostile = true;
    this.#keep();
  }

  apply({ dialect, stream, hostile, drafts }) {
    Object.assign(this.#values, { dialect, stream, hostile });
    for (const [name, { endpoint, model, key }] of Object.entries(drafts)) {
      this.#values.endpoints[name] = endpoint.trim();
      this.#values.models[name] = model.trim();
      this.#keys[name] = key.trim();
    }
    this.#keep();
  }

  #keep() {
    try {
      const endpoints = Object.entries(this.#values.endpoints).filter(([, address]) => isPlain(address));
      localStorage.setItem(this.#store, JSON.stringify({ ...this.#values, endpoints: Object.fromEntries(endpoints) }));
    } catch {
      // Without storage they last as long as the page.
    }
  }
}

/** The dialog. Each wire format has an endpoint, a model and a key of its own. */
export function settingsDialog(settings, changed) {
  const dialog = document.querySelector('#settings');
  const form = dialog.querySelector('form');
  const fields = form.elements;
  let drafts;
  let shown;

  const take = () => {
    drafts[shown] = { endpoint: fields.endpoint.value, model: fields.model.value, key: fields.key.value };
  };
  const show = (dialect) => {
    shown = dialect;
    for (const name of ['endpoint', 'model', 'key']) fields[name].value = drafts[dialect][name];
    fields.endpoint.placeholder = settings.defaultEndpoint(dialect);
    fields.model.placeholder = 'stand-in';
  };

  for (const radio of fields.dialect) {
    radio.addEventListener('change', () => {
      take();
      show(radio.value);
    });
  }
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'apply') {
      take();
      settings.apply({ dialect: shown, stream: fields.stream.checked, hostile: fields.hostile.checked, drafts });
      changed();
    }
    fields.key.value = '';
    dialog.returnValue = '';
  });
  // Enter in a field means Apply, though Cancel comes first.
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.target.tagName !== 'INPUT') return;
    event.preventDefault();
    form.requestSubmit(form.querySelector('[value=apply]'));
  });

  return {
    open() {
      drafts = Object.fromEntries(Object.keys(PATHS).map((dialect) => [dialect, settings.of(dialect)]));
      fields.dialect.value = settings.dialect;
      fields.stream.checked = settings.stream;
      fields.hostile.checked = settings.hostile;
      show(settings.dialect);
      dialog.returnValue = '';
      dialog.showModal();
    },
  };
}
