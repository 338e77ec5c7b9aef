// Errors that the user sees: whatever fails is reported here, or is in the view.

import { useSyncExternalStore } from 'react';

let notices = [];
const listeners = new Set();
const change = (next) => { notices = next; listeners.forEach((listener) => listener()); };
const subscribe = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };

export const report = (error) => change([...notices, { id: crypto.randomUUID(), text: `${error.code ?? error.name}: ${error.message}` }]);

/** A listener of a button or a form: reports what `work` throws. */
export const reporting = (work) => async (event) => {
  event.preventDefault();
  try { await work(event.currentTarget); } catch (error) { report(error); }
};

export function Notices() {
  const shown = useSyncExternalStore(subscribe, () => notices);
  const dismiss = (id) => change(notices.filter((notice) => notice.id !== id));
  return (
    <div role="alert">
      {shown.map(({ id, text }) => <p key={id}>{text} <button type="button" onClick={() => dismiss(id)}>Dismiss</button></p>)}
    </div>
  );
}
