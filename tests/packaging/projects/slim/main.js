import { readFileSync } from 'node:fs';
import { init, open, validate } from 'rethread/slim';

const codeOf = (call) => {
  try {
    return call().length;
  } catch (e) {
    return e.code;
  }
};
const check = () => validate({ messages: [{ role: 'user', content: 'hi' }] }, 'openai-chat');
const before = codeOf(check);
const read = (name) => readFileSync(new URL(import.meta.resolve(`rethread/${name}.wasm`)));
await init(read('rethread'), { stores: read('stores') });
const store = { get: async () => null, list: async () => ({ keys: [], cursor: null }), put() {}, delete() {} };
const { store: kind } = await (await open({ store })).status();
console.log(JSON.stringify({ before, after: codeOf(check), kind }));
