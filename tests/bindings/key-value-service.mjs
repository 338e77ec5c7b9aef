/** A key-value service with atomic commits, shared by those who open it. `given`: the entries of another one, as a
 *  killed process left them. */
export function keyValueService(given = []) {
  const entries = new Map(given);
  let versions = Math.max(0, ...given.map(([, { version }]) => Number(version)));
  return {
    entries: () => [...entries],
    get: async (key) => entries.get(key) ?? null,
    list: async (prefix, cursor, limit) => {
      const keys = [...entries.keys()]
        .filter((key) => key.startsWith(prefix) && (cursor === null || key > cursor))
        .sort()
        .slice(0, limit);
      return { keys, cursor: keys.length < limit ? null : keys.at(-1) };
    },
    put: async (key, value) => {
      entries.set(key, { value, version: `${(versions += 1)}` });
    },
    delete: async (key) => {
      entries.delete(key);
    },
    commit: async (checks, writes) => {
      if (checks.some(({ key, version }) => (entries.get(key)?.version ?? null) !== version)) return false;
      for (const { key, value } of writes) {
        if (value === null) entries.delete(key);
        else entries.set(key, { value, version: `${(versions += 1)}` });
      }
      return true;
    },
  };
}
