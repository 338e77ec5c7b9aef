// A server that a bundler makes one file of: prints what its chat did.

const { init, validate } = require('rethread/formats');
const { chat, keep, mapDriver } = require('./chat.js');

async function main() {
  const answer = await chat(process.argv[2]);
  // Needed where the wasm is text in the bundle; elsewhere it is loaded already.
  await init();
  const findings = validate({ messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }, 'openai-chat');
  return { ...answer, findings: findings.map(({ code }) => code), kept: await keep(mapDriver()) };
}

main()
  .catch((error) => ({ thrown: String(error), code: error.code }))
  .then((answer) => console.log(JSON.stringify(answer)));
