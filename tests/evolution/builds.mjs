// Two builds of the crate: the current one, and a later one, made from a copy whose stored types are changed as a later
// version would.

import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { asFactory } from '../../.ci/glue.mjs';
import { files, hash } from '../../.ci/shell.mjs';
import { bindgen } from '../../.ci/tools.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
const workFolder = path.join(target, 'evolution');

/** The folder of the later build's wasm and glue. */
export const laterDist = path.join(target, 'evolution-dist');

const CALM = 'mood: Some("calm".to_owned()),';

/** The differences of the later build: file, text, replacement. Each text must occur. */
const CHANGES = [
  ['src/store/record.rs', 'pub const VERSION: u8 = 1;', 'pub const VERSION: u8 = 2;'],
  // Optional fields that are added: of messages ...
  [
    'src/message.rs',
    '}\nencode_fields!(struct Message {',
    '    /// New.\n    pub mood: Option<String>,\n}\nencode_fields!(struct Message { 50 => mood,',
  ],
  ['src/message.rs', 'parent_id: None,', `parent_id: None, ${CALM}`],
  ['src/history/join.rs', 'parent_id: None,', `parent_id: None, ${CALM}`],
  // ... of heads, set by each append ...
  [
    'src/session_head.rs',
    '    pub unknown: UnknownFields,\n}\nencode_with_unknown_fields!(struct SessionHead {',
    '    pub unknown: UnknownFields,\n    /// New.\n    pub mood: Option<String>,\n}\nencode_with_unknown_fields!(struct SessionHead { 50 => mood,',
  ],
  ['src/session_head.rs', 'unknown: UnknownFields::default(),', 'unknown: UnknownFields::default(), mood: None,'],
  [
    'src/session_head.rs',
    'self.source_high_water = self.source_high_water.max(number);',
    'self.source_high_water = self.source_high_water.max(number); self.mood = Some("bright".to_owned());',
  ],
  // ... and of audit rows.
  [
    'src/store/audit.rs',
    '    pub unknown: UnknownFields,\n}\nencode_with_unknown_fields!(struct AuditRow {',
    '    pub unknown: UnknownFields,\n    /// New.\n    pub mood: Option<String>,\n}\nencode_with_unknown_fields!(struct AuditRow { 50 => mood,',
  ],
  ['src/store/audit.rs', 'unknown: UnknownFields::default(),', `unknown: UnknownFields::default(), ${CALM}`],
  // A variant that is added.
  ['src/message.rs', '    History,\n}', '    History,\n    /// New.\n    #[n(3)]\n    Plugin,\n}'],
  ['src/message.rs', 'Self::History => "history",', 'Self::History => "history", Self::Plugin => "plugin",'],
  [
    'src/web/classes/append.rs',
    '"history" => SourceKind::History,',
    '"history" => SourceKind::History, "plugin" => SourceKind::Plugin,',
  ],
  // Fields that are removed: their numbers are neither written nor read. The one of messages stays in Rust, under a
  // number of its own.
  ['src/message.rs', '    9 => parent_id,\n', '    51 => parent_id,\n'],
  ['src/session_head.rs', '    4 => title,\n', ''],
];

function laterSource(folder) {
  cpSync(path.join(root, 'src'), path.join(folder, 'src'), { recursive: true });
  for (const [file, text, replacement] of CHANGES) {
    const at = path.join(folder, file);
    const source = readFileSync(at, 'utf8');
    if (!source.includes(text))
      throw new Error(`${file} has no ${JSON.stringify(text)} any more: change CHANGES in tests/evolution/builds.mjs`);
    writeFileSync(at, source.replace(text, replacement));
  }
  const manifest = readFileSync(path.join(root, 'Cargo.toml'), 'utf8');
  // Without the tests, which are not copied.
  writeFileSync(
    path.join(folder, 'Cargo.toml'),
    `${manifest.slice(0, manifest.search(/^\[\[(test|bench|example)\]\]/m))}\n[workspace]\n`,
  );
}

function program(name, crate, features) {
  const folder = path.join(workFolder, name);
  mkdirSync(path.join(folder, 'src'), { recursive: true });
  cpSync(path.join(root, 'tests/evolution/program.rs'), path.join(folder, 'src/main.rs'));
  cpSync(path.join(root, 'Cargo.lock'), path.join(folder, 'Cargo.lock'));
  writeFileSync(
    path.join(folder, 'Cargo.toml'),
    `[package]
name = "program-${name}"
edition = "2024"
[features]
next = []
default = [${features}]
[dependencies]
rethread = { path = ${JSON.stringify(crate)}, default-features = false }
[workspace]
`,
  );
  // A target folder for each: with a common one, cargo once used the crate of the other build.
  const targetDir = path.join(target, `evolution-${name}`);
  cargo(path.join(folder, 'Cargo.toml'), targetDir);
  return path.join(targetDir, 'debug', `program-${name}`);
}

function cargo(manifest, targetDir, ...options) {
  execFileSync(
    'cargo',
    ['build', '--quiet', '--offline', '--manifest-path', manifest, '--target-dir', targetDir, ...options],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
}

/** Builds both as native programs, and returns a function that runs a command of one of them on a file. */
export function twoBuilds() {
  rmSync(workFolder, { recursive: true, force: true });
  const later = path.join(workFolder, 'later-source');
  laterSource(later);
  const programs = { now: program('now', root, ''), later: program('later', later, '"next"') };
  return (build, ...command) => {
    const out = execFileSync(programs[build], command, { encoding: 'utf8' });
    return out ? JSON.parse(out) : undefined;
  };
}

export const databaseFile = (name) => path.join(workFolder, `${name}.txt`);

/** Builds the later build for browsers, unoptimized, in `laterDist`. Does nothing if that is up to date. */
export async function buildLaterWasm() {
  const stamp = path.join(laterDist, '.stamp');
  const inputs = hash([
    ...files('src', '.rs'),
    'Cargo.toml',
    'Cargo.lock',
    'tests/evolution/builds.mjs',
    '.ci/glue.mjs',
  ]);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs) return;
  rmSync(laterDist, { recursive: true, force: true });
  mkdirSync(laterDist, { recursive: true });
  const source = path.join(target, 'evolution-source');
  rmSync(source, { recursive: true, force: true });
  laterSource(source);
  copyFileSync(path.join(root, 'Cargo.lock'), path.join(source, 'Cargo.lock'));
  const targetDir = path.join(target, 'evolution-wasm');
  cargo(
    path.join(source, 'Cargo.toml'),
    targetDir,
    '--lib',
    '--profile',
    'quick',
    '--target',
    'wasm32-unknown-unknown',
    '--no-default-features',
    '--features',
    'web',
  );
  execFileSync(await bindgen(), [
    path.join(targetDir, 'wasm32-unknown-unknown/quick/rethread.wasm'),
    laterDist,
    'rethread',
  ]);
  const glue = path.join(laterDist, 'rethread.js');
  writeFileSync(glue, asFactory(readFileSync(glue, 'utf8')));
  writeFileSync(stamp, inputs);
}
