// A value that outlives the components that show it.

import { useSyncExternalStore } from 'react';

export function sharedValue(value) {
  const listeners = new Set();
  const subscribe = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    use: () => useSyncExternalStore(subscribe, () => value),
    change(update) {
      value = update(value);
      for (const listener of listeners) listener();
    },
  };
}
