// Serves the demo on one origin: www/, the package as if installed, and the model stand-in. The demo does not need the
// optimized wasm, whose first build takes minutes.

import path from 'node:path';
import { buildForDemo } from './build.mjs';
import { root } from './shell.mjs';
import { serve } from './serve.mjs';

try {
  await buildForDemo();
  const { createStandIn } = await import('../tests/stand-in/server.mjs');
  const standIn = createStandIn();
  const inRoot = (name) => path.join(root, name);
  const { url, port, close } = await serve({
    // The files that `npm install rethread` would install, and nothing else of the repository.
    folders: {
      '/': inRoot('www'),
      '/node_modules/rethread/js/': inRoot('js'),
      '/node_modules/rethread/dist/': inRoot('dist'),
      '/node_modules/rethread/docs/rules/': inRoot('docs/rules'),
    },
    handle: standIn.handle,
    port: Number(process.env.PORT || 4173),
  });
  if (process.env.PORT && Number(process.env.PORT) !== port) console.log(`port ${process.env.PORT} is taken`);
  console.log(
    `\nrethread demo: ${url}/\nmodel stand-in: ${url}/v1/chat/completions, ${url}/v1/messages\nStop it with Ctrl-C.`,
  );
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      standIn.state.dispose();
      await close();
      process.exit(0);
    });
  }
} catch (e) {
  console.error(`start: ${e.message}`);
  process.exit(1);
}
