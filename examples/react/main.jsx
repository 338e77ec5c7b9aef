// The page: a store in IndexedDB, the list of its chats and the one that is shown.

import { StrictMode, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { init, open } from 'rethread';
import wasm from 'rethread/rethread.wasm'; // esbuild copies the file. Vite needs neither this line nor `init`.
import { Chat } from './chat.jsx';
import { ChatList } from './chat-list.jsx';
import { drivePageRun, request, useHash, useSession } from './hooks.js';
import { Notices, report } from './notices.jsx';

await init(new URL(wasm, location.href));
const store = await open({ name: 'react-chat', onWarning: console.warn });

const showNewChat = () => { location.hash = crypto.randomUUID(); };
if (!location.hash) showNewChat();

function App() {
  const id = useHash(); // so a reload shows the same chat
  const session = useSession(store, id);

  // Continues what a crash or a reload interrupted, in all chats. StrictMode runs this effect twice, and nothing is resumed twice.
  useEffect(() => {
    store.resumeAll(request).then(({ runs, queued, failed }) => {
      runs.forEach(drivePageRun);
      queued.forEach(({ resume }) => resume().then((run) => run && drivePageRun(run), report));
      failed.forEach(({ error }) => report(error));
    }, report);
  }, []);

  return (
    <>
      <ChatList store={store} shown={id} onNew={showNewChat} />
      {session?.id === id && <Chat key={id} session={session} />}
      <Notices />
    </>
  );
}

createRoot(document.querySelector('#root')).render(<StrictMode><App /></StrictMode>);
