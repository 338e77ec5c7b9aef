// Errors that the user sees: whatever fails is reported here, or is in the view.

import { sharedValue } from './shared-value.js';

const notices = sharedValue([]);

export const report = (error) => notices.change((all) => [...all, { id: crypto.randomUUID(), text: `${error.code ?? error.name}: ${error.message}` }]);

/** A listener of a button or a form: reports what `work` throws. */
export const reporting = (work) => async (event) => {
  event.preventDefault();
  try { await work(event.currentTarget); } catch (error) { report(error); }
};

export function Notices() {
  const shown = notices.use();
  const dismiss = (id) => notices.change((all) => all.filter((notice) => notice.id !== id));
  return (
    <div role="alert">
      {shown.map(({ id, text }) => <p key={id}>{text} <button type="button" onClick={() => dismiss(id)}>Dismiss</button></p>)}
    </div>
  );
}
