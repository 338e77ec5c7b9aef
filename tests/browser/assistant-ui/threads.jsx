// The first lines of docs/assistant-ui.md in a page, whose runtime the test uses itself.

import { AssistantRuntimeProvider } from '@assistant-ui/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { init, open } from 'rethread';

await init(new URL('/dist/rethread_bg.wasm', location.href));
globalThis.threadModel = {
  async run({ messages }) {
    const { content } = messages.at(-1);
    return { content: [{ type: 'text', text: `Answer to ${content.map(({ text }) => text).join(' ')}` }] };
  },
};
globalThis.store = await open();
const { useThreads } = await import('docs:assistant-ui');

function Page() {
  const runtime = useThreads();
  globalThis.runtime = runtime;
  return <AssistantRuntimeProvider runtime={runtime}>Ready.</AssistantRuntimeProvider>;
}

createRoot(document.querySelector('#root')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
