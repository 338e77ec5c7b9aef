// Several builds in one run: sizes, next body, repair, convert, streams, cold open and decoding, side by side. The
// builds take turns, so that the load of the machine falls on each of them alike.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { race, summary, time } from './stats.js';
import { cell, ratio, ratioCell, table } from './table.mjs';
import { broken } from './wire-formats.js';
import { INPUT, PARAMS, TURN, encode, encoder, messagesOf } from './work.js';
import { copyPackage, openWorld, sizes } from './world.mjs';

const DIALECT = 'openai-chat';
const OPENINGS = 7;
const AFTER_TURNS = 7;
const KB = 1024;
const MB = 1024 * KB;

/** Reads the arguments: `DIR` or `NAME=DIR`. Without a name the folder's own is used, of a dist folder its parent's. */
function named(argument) {
  const [, name, folder] = /^(?:([\w.-]+)=)?(.+)$/.exec(argument);
  const full = path.resolve(folder);
  const own = path.basename(full) === 'dist' ? path.basename(path.dirname(full)) : path.basename(full);
  return { name: name ?? own, source: full };
}

function loadAll(args, folder) {
  const builds = args.map(named);
  if (new Set(builds.map(({ name }) => name)).size !== builds.length)
    throw new Error('two builds have the same name: give them as NAME=DIR');
  return Promise.all(
    builds.map(async ({ name, source }, at) => {
      const copy = copyPackage(source, path.join(folder, `b${at}`));
      const rethread = await import(pathToFileURL(path.join(copy, 'js/entry/node.js')).href);
      return { name, folder: copy, prefix: `/b${at}`, database: `builds-${at}`, rethread };
    }),
  );
}

/** A stream of 3,000 events in pieces of 1 KB, as bytes. */
function streamPieces() {
  const event = (delta, finish = null) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-bench',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'gpt-bench',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const events = Array.from({ length: 3000 }, (_, at) =>
    event({ content: `The parcel number ${at} left the warehouse. ` }),
  );
  const bytes = encoder.encode(
    [event({ role: 'assistant', content: '' }), ...events, event({}, 'stop'), 'data: [DONE]\n\n'].join(''),
  );
  return Array.from({ length: Math.ceil(bytes.length / KB) }, (_, at) => bytes.subarray(at * KB, (at + 1) * KB));
}

function assemble({ StreamAssembler }, pieces) {
  const assembler = new StreamAssembler(DIALECT);
  for (const piece of pieces) assembler.push(piece);
  if (assembler.finish().status !== 'complete') throw new Error('the stream is not complete');
}

/** Races `work(build)` over all builds, with a floor. */
const raceBuilds = (builds, work, floor, options) =>
  race({ ...Object.fromEntries(builds.map((build) => [build.name, () => work(build)])), floor }, options);

const stringified = (messages) => () =>
  encoder.encode(JSON.stringify({ ...PARAMS[DIALECT], messages: [...messages, { role: 'user', content: INPUT }] }));

async function nextBody(builds, size) {
  const messages = messagesOf(DIALECT, size / TURN);
  const request = { dialect: DIALECT, params: PARAMS[DIALECT], input: INPUT, replay: { freshness: Infinity } };
  const sessions = new Map();
  const first = {};
  for (const build of builds) {
    const client = await build.rethread.open({ store: 'memory', name: `w1-${size}` });
    const session = await client.session('s');
    await session.append({ messages }, DIALECT);
    first[build.name] = summary([await time(() => session.render(request))]);
    sessions.set(build, { client, session });
  }
  const render = (build) => sessions.get(build).session.render(request);
  const rounds = size > 1000 ? 15 : 30;
  const warm = await raceBuilds(builds, render, stringified(messages), { rounds, inner: size > 1000 ? 1 : 4 });
  const after = Object.fromEntries([...builds.map(({ name }) => name), 'floor'].map((name) => [name, []]));
  const grown = [...messages];
  for (let at = 0; at < AFTER_TURNS; at += 1) {
    const turn = messagesOf(DIALECT, 1, size / TURN + at);
    grown.push(...turn);
    for (const build of builds) await sessions.get(build).session.append({ messages: turn }, DIALECT);
    for (let next = 0; next < builds.length; next += 1) {
      const build = builds[(next + at) % builds.length];
      after[build.name].push(await time(() => render(build)));
    }
    after.floor.push(await time(stringified(grown)));
  }
  for (const { client } of sessions.values()) await client.close();
  return [
    [`W1, ${size}: render (ms)`, warm],
    [
      `W1, ${size}: render after a turn`,
      Object.fromEntries(Object.entries(after).map(([name, values]) => [name, summary(values)])),
    ],
    [`W1, ${size}: first render`, first],
  ];
}

async function wholeBodies(builds, size) {
  const messages = messagesOf(DIALECT, size / TURN);
  const good = encode({ ...PARAMS[DIALECT], messages });
  const bad = encode({ ...PARAMS[DIALECT], messages: broken(messages) });
  const decoder = new TextDecoder();
  const json = (bytes) => () => encoder.encode(JSON.stringify(JSON.parse(decoder.decode(bytes))));
  const options = { rounds: size > 1000 ? 7 : 20 };
  const works = [
    [
      'validate',
      ({ rethread }) => {
        rethread.validate(good, DIALECT);
      },
      good,
    ],
    [
      'repair, valid',
      ({ rethread }) => {
        rethread.repair(good, DIALECT);
      },
      good,
    ],
    [
      'repair, broken',
      ({ rethread }) => {
        rethread.repair(bad, DIALECT);
      },
      bad,
    ],
    [
      'convert',
      ({ rethread }) => {
        rethread.convert(good, DIALECT, 'anthropic');
      },
      good,
    ],
  ];
  const rows = [];
  for (const [name, work, bytes] of works)
    rows.push([`W4, ${size}: ${name} (ms)`, await raceBuilds(builds, work, json(bytes), options)]);
  return rows;
}

async function streams(builds) {
  const pieces = streamPieces();
  const text = new TextDecoder().decode(Buffer.concat(pieces));
  const floor = () =>
    text
      .split('\n\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)));
  return [
    [
      'W4, stream of 3,000 events (ms)',
      await raceBuilds(builds, ({ rethread }) => assemble(rethread, pieces), floor, { rounds: 20 }),
    ],
  ];
}

/** Cold opens in Chromium, each in a fresh page. */
async function coldOpens(builds, size) {
  const world = await openWorld(Object.fromEntries(builds.map(({ prefix, folder }) => [prefix, folder])));
  const samples = {};
  const add = (row, name, value) => ((samples[row] ??= {})[name] ??= []).push(value);
  try {
    for (const { prefix, database } of builds) {
      const page = await world.page(prefix);
      await page.evaluate(([name, count]) => bench.store(name, count), [database, size]);
      await page.close();
    }
    for (let at = 0; at < OPENINGS; at += 1) {
      for (const session of ['turns', 'whole']) {
        for (let next = 0; next < builds.length; next += 1) {
          const build = builds[(next + at) % builds.length];
          const page = await world.page(build.prefix);
          const took = await page.evaluate(([name, id]) => bench.coldOpen(name, id), [build.database, session]);
          await page.close();
          const row = (text) =>
            `cold open, ${size}, ${session === 'turns' ? 'a record a turn' : 'one record'}: ${text}`;
          add(row('open and render (ms)'), build.name, took.total);
          add(row('of it the session'), build.name, took.session);
          add(row('of it render'), build.name, took.render);
          add(row('bare read of the records'), build.name, took.read);
          // With a record a turn, reading dominates, and the difference is noise.
          if (session === 'whole') add(row('decode and fold (session - bare read)'), build.name, took.decode);
          add(row('linear memory of the session (MB)'), build.name, took.sessionMemory / MB);
          add(row('the same : JSON of the body'), build.name, took.sessionMemory / took.bodyBytes);
          add(row('with a render : JSON of the body'), build.name, took.memory / took.bodyBytes);
        }
      }
    }
  } finally {
    await world.close();
  }
  return Object.entries(samples).map(([label, by]) => [
    label,
    Object.fromEntries(Object.entries(by).map(([name, values]) => [name, summary(values)])),
  ]);
}

function print(title, builds, rows) {
  const [base, ...others] = builds.map(({ name }) => name);
  table(
    `${title} (median / min; last columns: the ratio to ${base})`,
    ['', base, ...others, 'JSON', ...others.map((name) => `${name} : ${base}`)],
    rows.map(([label, times]) => [
      label,
      cell(times[base]),
      ...others.map((name) => cell(times[name])),
      cell(times.floor),
      ...others.map((name) => ratioCell(ratio(times[name], times[base]))),
    ]),
  );
}

function printSizes(builds) {
  const of = (folder, program) => sizes(folder, program).at(-1);
  const kb = (bytes) => (bytes / KB).toFixed(1);
  const rows = ['rethread', 'formats'].flatMap((program) => {
    const totals = builds.map(({ folder }) => of(folder, program));
    return ['raw', 'brotli'].map((key) => [
      `${program}, wasm and glue, ${key}`,
      ...totals.map((total) => kb(total[key])),
    ]);
  });
  table('Sizes (KB)', ['', ...builds.map(({ name }) => name)], rows);
}

/** Measures the builds at these paths and prints tables; returns the rows. */
export async function compareBuilds(args, folder, { counts, browser = true, node = true }) {
  if (args.length === 0)
    throw new Error('give the folders of the builds: npm run bench -- builds before=DIR after=DIR');
  const builds = await loadAll(args, folder);
  printSizes(builds);
  const rows = [];
  const add = (title, more) => {
    print(title, builds, more);
    rows.push(...more);
  };
  if (node) {
    for (const size of counts) add(`W1, ${size} messages, Node`, await nextBody(builds, size));
    for (const size of counts) add(`W4, ${size} messages, Node`, await wholeBodies(builds, size));
    add('Streams, Node', await streams(builds));
  }
  if (browser)
    for (const size of counts.slice(-1)) add(`cold open, ${size} messages, Chromium`, await coldOpens(builds, size));
  return rows;
}
