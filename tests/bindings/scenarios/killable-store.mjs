// Processes that can be killed, on one store. The same file runs in a page and in Node.

/**
 * The life of a process: {isOver, kill(where), dead}. `dead` resolves when it is killed. If `writes` is n, the process
 * is killed at its n-th write from now on, before it if `isBefore` is set, and after it otherwise.
 */
export function newLife(onKill) {
  const life = { isOver: false, writes: 0, isBefore: false };
  life.dead = new Promise((resolve) => {
    life.kill = (where) => {
      if (life.isOver) return;
      life.isOver = true;
      onKill(where);
      resolve({ crashed: true });
    };
  });
  return life;
}

/** A store of one process: it stops when the process is killed, before or after it applied a write. */
export function killable(store, life) {
  const guarded = { capabilities: () => ({ ...store.capabilities(), durable: true }), close: () => {} };
  for (const method of ['head', 'read', 'sessions', 'invocations', 'deleteSession', 'append']) {
    guarded[method] = async (...args) => {
      if (life.isOver) throw new Error('the process was killed');
      if (method !== 'append') return store[method](...args);
      life.writes -= 1;
      const isLast = life.writes === 0;
      if (isLast && life.isBefore) life.kill('before a write');
      if (life.isOver) throw new Error('the process was killed');
      const outcome = await store.append(...args);
      if (isLast) life.kill('after a write');
      if (life.isOver) throw new Error('the process was killed');
      return outcome;
    };
  }
  return guarded;
}
