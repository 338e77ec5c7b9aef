// The list of chats, the newest first.

import { useState } from 'react';
import { reporting } from './notices.jsx';
import { useSessions } from './hooks.js';

const PAGE = 50;

export function ChatList({ store, shown, onNew }) {
  const [archived, setArchived] = useState(false);
  const [limit, setLimit] = useState(PAGE);
  const { sessions, hasMore } = useSessions(store, { archived, limit });

  async function archive(id) {
    using session = await store.session(id);
    await session.update({ archived: !archived });
  }
  async function remove(id) {
    if (id === shown) onNew();
    await store.deleteSession(id);
  }
  return (
    <nav aria-label="Chats">
      <button type="button" onClick={onNew}>New chat</button>
      <label><input type="checkbox" checked={archived} onChange={(event) => setArchived(event.target.checked)} /> Archived</label>
      <ul>
        {sessions.map(({ id, title, pendingRuns }) => (
          <li key={id}>
            <a href={`#${id}`} aria-current={id === shown || undefined}>{title ?? 'Untitled'}{pendingRuns > 0 && ' …'}</a>
            <button type="button" onClick={reporting(() => archive(id))}>{archived ? 'Unarchive' : 'Archive'}</button>
            <button type="button" onClick={reporting(() => remove(id))}>Delete</button>
          </li>
        ))}
      </ul>
      {hasMore && <button type="button" onClick={() => setLimit(limit + PAGE)}>More</button>}
    </nav>
  );
}
