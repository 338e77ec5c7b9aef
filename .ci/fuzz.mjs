// Fuzzing. Inputs that reach new code are kept in the cache, so that a run can be stopped at any time and the next one
// continues.
//
//   npm run fuzz                                    every target, a CPU-minute each
//   npm run fuzz -- --minutes 10 repair convert     these, ten CPU-minutes each
//   npm run fuzz -- --keep                          then writes the corpora that `cargo test` replays: few inputs that
//                                                   reach nearly the same
//
// An input that crashes is written to tests/fuzz/crashes: name it after the defect, and fix the cause.

import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { DIALECTS } from '../js/dialects.js';
import { cache, files, output, read, root, run } from './shell.mjs';
import { cargoFuzz } from './tools.mjs';

const FUZZ = 'tests/fuzz';
/** Maximum size of a replayed corpus in bytes of input; nine of them are in the repository. */
const MAX_CORPUS = 80_000;
/** Maximum length of an input: longer ones are slower and rarely find more. */
const MAX_INPUT = 8192;
const SEEDS = 10;

const targets = [...read(`${FUZZ}/Cargo.toml`).matchAll(/\[\[bin\]\]\nname = "(\w+)"/g)].map(([, name]) => name);
const folderOf = (target) => path.join(cache, 'fuzz', target);
const crashesOf = (target) => path.join(root, FUZZ, 'crashes', target);
const keptOf = (target) => path.join(root, FUZZ, 'corpus', `${target}.txt`);
const inputs = (folder) =>
  readdirSync(folder)
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).isFile());
const bySize = (a, b) => a.length - b.length || Buffer.compare(a, b);

/** The smallest recorded requests of a dialect, as bytes. */
function requests(dialect) {
  const all = files(`tests/corpora/exchanges/${dialect}`, '.json')
    .filter((file) => !file.endsWith('index.json'))
    .flatMap((file) => JSON.parse(read(file)).steps.map(({ request }) => Buffer.from(JSON.stringify(request))));
  // Some of every size that is small enough for mutations.
  const small = all.filter(({ length }) => length < MAX_INPUT / 2).sort(bySize);
  return Array.from({ length: Math.min(SEEDS, small.length) }, (_, i) => small[Math.floor((i * small.length) / SEEDS)]);
}

function streams(dialect) {
  return files(`tests/corpora/streams/${dialect}`)
    .filter((file) => !file.endsWith('index.json'))
    .map((file) => {
      const text = read(file);
      return Buffer.from(
        file.endsWith('.jsonl')
          ? text
              .split('\n')
              .filter(Boolean)
              .map((line) => `data: ${line}\n\n`)
              .join('')
          : text,
      );
    })
    .sort(bySize)
    .slice(0, SEEDS)
    .map((bytes) => bytes.subarray(0, MAX_INPUT / 2));
}

const withHead = (head, body) => Buffer.concat([Buffer.from(head), body]);

/** The same events with CRLF line ends, each event's data on two lines. */
const folded = (bytes) =>
  Buffer.from(
    bytes
      .toString('latin1')
      .replace(/^(data: \{[^,\n]*,)/gm, '$1\ndata: ')
      .replaceAll('\n', '\r\n'),
    'latin1',
  );

/** The first inputs of a target: recorded traffic, in the form that tests/fuzz/judge reads. */
function seeds(target) {
  const each = (make) => DIALECTS.flatMap((dialect, at) => make(dialect, at));
  switch (target) {
    case 'record':
      return files('tests/native/fixtures', '.bin').map((file) => {
        const bytes = readFileSync(path.join(root, file));
        return withHead([bytes[1] - 1], bytes.subarray(6));
      });
    case 'stream':
      return each((dialect, at) =>
        streams(dialect).flatMap((bytes) => [bytes, folded(bytes)].map((one) => withHead([at, 1, 1], one))),
      );
    case 'repair':
      return each((dialect, at) => requests(dialect).map((body) => withHead([at], body)));
    case 'convert':
      return each((dialect, at) => requests(dialect).map((body, i) => withHead([at + 5 * (i % 5)], body)));
    default:
      return requests(target.replace('decode_', '').replaceAll('_', '-'));
  }
}

function writeSeeds(target) {
  mkdirSync(folderOf(target), { recursive: true });
  const kept = existsSync(keptOf(target))
    ? readFileSync(keptOf(target), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => Buffer.from(line, 'base64'))
    : [];
  const crashes = existsSync(crashesOf(target)) ? inputs(crashesOf(target)).map((file) => readFileSync(file)) : [];
  for (const bytes of [...seeds(target), ...kept, ...crashes]) {
    writeFileSync(path.join(folderOf(target), createHash('sha1').update(bytes).digest('hex')), bytes);
  }
}

async function compile() {
  const place = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target', 'fuzz');
  // No address sanitizer: the library has no unsafe code, and a run without it is several times as fast.
  await run('cargo-fuzz', ['build', '--fuzz-dir', FUZZ, '--sanitizer', 'none', '--target-dir', place], { minutes: 30 });
  const host = /host: (\S+)/.exec(output('rustc', ['-vV']))[1];
  return (target) => path.join(place, host, 'release', target);
}

/** Runs a target for this many seconds of CPU time. */
async function fuzz(program, target, seconds) {
  mkdirSync(crashesOf(target), { recursive: true });
  const times = path.join(mkdtempSync(path.join(tmpdir(), 'rethread-fuzz-')), 'times');
  let used = 0;
  while (used < seconds - 1) {
    const wall = Math.ceil(seconds - used);
    const args = [
      folderOf(target),
      `-max_total_time=${wall}`,
      `-max_len=${MAX_INPUT}`,
      '-timeout=20',
      '-rss_limit_mb=4096',
      '-print_final_stats=1',
      '-verbosity=0',
      `-dict=${path.join(root, FUZZ, 'json.dict')}`,
      `-artifact_prefix=${crashesOf(target)}/`,
    ];
    // The shell reports the CPU time of its child. libFuzzer's recommendations for a dictionary, which are long, are
    // filtered out.
    await run(
      'bash',
      [
        '-c',
        '"$@" 2> >(grep -a -v -e "^[#\\"]" -e "__sanitizer" -e NEW_FUNC >&2); code=$?; times > "$0"; exit $code',
        times,
        program,
        ...args,
      ],
      { minutes: wall / 60 + 5 },
    );
    const spent = readFileSync(times, 'utf8')
      .trim()
      .split('\n')[1]
      .matchAll(/(\d+)m([\d.]+)s/g);
    used += [...spent].reduce((sum, [, minutes, rest]) => sum + 60 * Number(minutes) + Number(rest), 0);
  }
  rmSync(path.dirname(times), { recursive: true });
  if (!inputs(crashesOf(target)).length) rmSync(crashesOf(target), { recursive: true });
  console.log(
    `${target}: ${Math.round(used)} s of CPU time, ${inputs(folderOf(target)).length} inputs in ${folderOf(target)}`,
  );
}

/** Chooses inputs, sorted from small to large: the smallest for half of the allowed size, and some of every size for
 *  the other half. */
function choose(all) {
  let room = MAX_CORPUS / 2;
  const small = all.findIndex((bytes) => (room -= bytes.length) < 0);
  if (small < 0) return all;
  const large = all.slice(small);
  const step = Math.ceil(large.reduce((sum, bytes) => sum + bytes.length, 0) / (MAX_CORPUS / 2));
  return [...all.slice(0, small), ...large.filter((_, i) => i % step === 0)];
}

/** Writes the replayed corpus: inputs that together reach the same code as all inputs. */
async function keep(program, target) {
  const place = mkdtempSync(path.join(tmpdir(), 'rethread-fuzz-'));
  await run(program, ['-merge=1', '-verbosity=0', '-timeout=20', place, folderOf(target)], { minutes: 20 });
  const chosen = choose(
    inputs(place)
      .map((file) => readFileSync(file))
      .sort(bySize),
  );
  // Also some complete seeds: by coverage alone no stream with a split line end is kept.
  const whole = seeds(target)
    .sort(bySize)
    .slice(0, SEEDS)
    .filter((bytes) => !chosen.some((other) => other.equals(bytes)));
  const kept = [...chosen, ...whole].sort(bySize);
  rmSync(place, { recursive: true });
  mkdirSync(path.dirname(keptOf(target)), { recursive: true });
  writeFileSync(keptOf(target), kept.map((bytes) => `${bytes.toString('base64')}\n`).join(''));
  console.log(`${target}: ${kept.length} inputs kept`);
}

try {
  const { values, positionals } = parseArgs({
    options: { minutes: { type: 'string', default: '1' }, keep: { type: 'boolean' } },
    allowPositionals: true,
  });
  const seconds = 60 * Number(values.minutes);
  if (!(seconds >= 0)) throw new Error(`--minutes must be a number, not "${values.minutes}"`);
  const unknown = positionals.find((name) => !targets.includes(name));
  if (unknown) throw new Error(`no target ${unknown}: one of ${targets.join(', ')}`);
  const chosen = positionals.length ? positionals : targets;
  await cargoFuzz();
  const programOf = await compile();
  const failed = [];
  for (const target of chosen) {
    writeSeeds(target);
    await fuzz(programOf(target), target, seconds).catch((e) => {
      console.error(`fuzz: ${target}: ${e.message}; the input is in ${FUZZ}/crashes/${target}`);
      failed.push(target);
    });
    if (values.keep) await keep(programOf(target), target);
  }
  if (failed.length) throw new Error(`crashes were found: ${failed.join(', ')}`);
} catch (e) {
  console.error(`fuzz: ${e.message}`);
  process.exit(1);
}
