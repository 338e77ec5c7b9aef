// A CommonJS program: prints what its chat did, and what each entry exports to `require` and to `import`.

const rethread = require('rethread');
const { repairing, RethreadError: FetchError } = require('rethread/fetch');
const { drive } = require('rethread/host');
const { chat, keep, mapDriver } = require('./chat.cjs');

const [, , fetchUrl, modelUrl, names] = process.argv;
const messages = [
  { role: 'user', content: 'hi' },
  { role: 'tool', tool_call_id: 'x', content: '' },
];
const send = (fetch) =>
  fetch(fetchUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages }),
  });

async function main() {
  const exported = {};
  for (const name of JSON.parse(names)) {
    const required = require(name);
    const imported = await import(name);
    const keys = Object.keys(required).filter((key) => key !== '__esModule');
    exported[name] = {
      isComplete: JSON.stringify(keys.sort()) === JSON.stringify(Object.keys(imported).sort()) && keys.length > 0,
      isSame: keys.every((key) => required[key] === imported[key]),
    };
  }
  return {
    // Synchronous from the first line, as in a module.
    findings: rethread.validate({ messages }, 'openai-chat').map(({ code }) => code),
    statuses: [(await send(fetch)).status, (await send(repairing())).status],
    ...(await chat(modelUrl)),
    kept: await keep(mapDriver()),
    oneError: rethread.RethreadError === FetchError,
    // The runs of one entry are those that another one drives.
    oneHost: drive === require('rethread/host').drive,
    exported,
  };
}

main()
  .catch((error) => ({ thrown: String(error?.stack ?? error), code: error?.code }))
  .then((answer) => console.log(JSON.stringify(answer)));
