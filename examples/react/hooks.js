// What the components share: the request of each run, its host, and the hooks.

import { useEffect, useState, useSyncExternalStore } from 'react';
import { drive, isDriven } from 'rethread/host';
import { toolsFor } from '../chat/tools.js';
import { report } from './notices.jsx';

const here = (path) => new URL(path, location.origin).href;
const { post_note, ...tools } = toolsFor({ WEATHER_URL: here('/weather'), WEBHOOK_URL: here('/notes') });

/** Of a new run and of one that is resumed: tools are functions, so they are not stored. server.js adds the key. */
export const request = {
  provider: { dialect: 'openai-chat', url: here('/v1/chat/completions'), params: { model: globalThis.MODEL }, stream: true },
  tools: { ...tools, post_note: { ...post_note, needsApproval: true } },
};

/** Executes a run until it ends. While it waits for an approval, `view.approve` and `view.reject` decide. The view shows how it fails. */
export function drivePageRun(run) {
  if (!isDriven(run)) drive(run, { onApproval: 'wait' }).result.catch(report);
}

/** Messages, calls and the run, from this tab and others; rendered once a frame at most. */
export function useView(session) {
  const view = session.view({ notify: 'frame' });
  return [useSyncExternalStore(view.subscribe, view.getSnapshot), view];
}

/** The session, or null while it opens. One that is no longer shown leaves memory when its run has ended. */
export function useSession(store, id) {
  const [session, setSession] = useState(null);
  useEffect(() => {
    let isShown = true;
    const opening = store.session(id);
    opening.then((opened) => isShown && setSession(opened), report);
    return () => {
      isShown = false;
      setSession(null);
      // A failed opening is reported above.
      opening.then((opened) => opened[Symbol.dispose ?? Symbol.for('Symbol.dispose')](), () => {}).catch(report);
    };
  }, [store, id]);
  return session;
}

const onHashChange = (listener) => {
  addEventListener('hashchange', listener);
  return () => removeEventListener('hashchange', listener);
};

/** The part of the address after "#". */
export const useHash = () => useSyncExternalStore(onHashChange, () => location.hash.slice(1));

/** The newest chats, and whether there are more. */
export function useSessions(store, { archived, limit }) {
  const [page, setPage] = useState({ items: [], cursor: null });
  useEffect(() => {
    let last;
    const read = () => {
      const reading = store.sessions({ archived, limit });
      last = reading;
      reading.then((next) => reading === last && setPage(next), report);
    };
    read();
    const unsubscribe = store.subscribe(read); // also after changes of other tabs
    return () => {
      last = null;
      unsubscribe();
    };
  }, [store, archived, limit]);
  return { sessions: page.items, hasMore: page.cursor !== null };
}
