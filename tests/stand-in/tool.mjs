// A deterministic result for any tool, by name and arguments only.

import { digest } from './signature.mjs';

const SKIES = ['clear', 'cloudy', 'rain', 'fog', 'snow'];
const sorted = (v) => {
  if (Array.isArray(v)) return v.map(sorted);
  if (v && typeof v === 'object')
    return Object.fromEntries(
      Object.keys(v)
        .sort()
        .map((k) => [k, sorted(v[k])]),
    );
  return v;
};

export function resultOf(name, args) {
  let given = args;
  if (typeof given === 'string') {
    try {
      given = JSON.parse(given);
    } catch {
      /* a cut or odd text is used as it is */
    }
  }
  const key = JSON.stringify(sorted(given ?? {}));
  const seed = [...digest(`${name}:${key}`, 12)].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 1000003, 7);
  const place =
    given?.city ??
    given?.location ??
    given?.place ??
    Object.values(given ?? {}).find((v) => typeof v === 'string') ??
    'nowhere';
  if (/weather|forecast|temperature/i.test(name))
    return { city: place, celsius: (seed % 35) - 5, sky: SKIES[seed % SKIES.length] };
  if (/time|clock/i.test(name)) {
    const two = (n) => String(n).padStart(2, '0');
    return { city: place, time: `${two(seed % 24)}:${two(seed % 60)}` };
  }
  return { tool: name, about: place, value: seed % 1000 };
}
