import { readFileSync } from 'node:fs';
import { init, validate } from 'rethread/slim';

const codeOf = (call) => {
  try {
    return call().length;
  } catch (e) {
    return e.code;
  }
};
const check = () => validate({ messages: [{ role: 'user', content: 'hi' }] }, 'openai-chat');
const before = codeOf(check);
await init(readFileSync(new URL(import.meta.resolve('rethread/rethread.wasm'))));
console.log(JSON.stringify({ before, after: codeOf(check) }));
