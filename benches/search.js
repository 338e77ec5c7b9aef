// The list of sessions and the search over IndexedDB, in a page, beside reads of the same heads without a library.

import { summary, time } from './stats.js';
import { done } from './idb.js';

const WORDS_A_MESSAGE = 60;
const VOCABULARY = 4_000;
const HITS = 5;

/** Numbers that look random and are the same in every run. */
function numbers(seed) {
  let state = seed + 1;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A text whose words are as often as in languages: a few often, most seldom. */
function textOf(draw) {
  return Array.from({ length: WORDS_A_MESSAGE }, () => {
    const rank = Math.floor(VOCABULARY ** (draw(1e6) / 1e6));
    return `w${rank.toString(36)}ord`;
  }).join(' ');
}

/** Stores sessions with a title, a question and an answer. A few of them have the word `needle`. */
export async function fillSessions(rethread, name, count) {
  let now = 1_700_000_000_000;
  const client = await rethread.open({ store: 'indexeddb', name, now: () => (now += 1_000) });
  for (let at = 0; at < count; at += 1) {
    const draw = numbers(at);
    const session = await client.session(`chat-${at}`, { title: `About w${draw(VOCABULARY).toString(36)}ord` });
    const end = at % Math.ceil(count / HITS) === 0 ? ' needle' : '';
    await session.append([
      { role: 'user', parts: [{ type: 'text', text: textOf(draw) + end }] },
      { role: 'assistant', parts: [{ type: 'text', text: textOf(draw) }] },
    ]);
    session[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  }
  await client.close();
}

/** One of the searches: a word of few sessions, one of none, one of most. */
const SEARCHES = { few: 'needle', none: 'absentword', most: 'w1ord' };

/** Times in a page that was just loaded: the first search after `open`, as `first`, then the next ones. */
export async function searchTimes(rethread, name, rounds, first) {
  const client = await rethread.open({ store: 'indexeddb', name });
  const samples = {};
  const take = async (label, work) => (samples[label] ??= []).push(await time(work));
  const found = {};
  await take(first, () => client.search(SEARCHES.few));
  for (let round = 0; round < rounds; round += 1) {
    for (const [label, text] of Object.entries(SEARCHES))
      await take(`search: ${label}`, async () => {
        found[label] = (await client.search(text)).items.length;
      });
    await take('list of 50', () => client.sessions({ limit: 50 }));
    const session = await client.session('chat-1');
    await session.append([{ role: 'user', parts: [{ type: 'text', text: `word${round}` }] }]);
    await take('search after an append', () => client.search(SEARCHES.few));
  }
  await client.close();
  const db = await done(indexedDB.open(name));
  const heads = () => db.transaction('heads').objectStore('heads');
  let bytes = 0;
  for (let round = 0; round < rounds; round += 1)
    await take('floor: getAll of the heads', async () => {
      bytes = (await done(heads().getAll())).reduce((sum, { v }) => sum + v.length, 0);
    });
  db.close();
  const times = Object.fromEntries(Object.entries(samples).map(([label, values]) => [label, summary(values)]));
  return { times, found, bytes };
}
