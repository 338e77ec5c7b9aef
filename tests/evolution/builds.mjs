// Two builds of the crate: this one, and a later one, made of a copy whose stored types are changed as a later version would.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
const place = path.join(target, 'evolution');

/** What the later build has otherwise: file, text, its replacement. Each text must be there. */
const CHANGES = [
  ['src/store/record.rs', 'pub const VERSION: u8 = 1;', 'pub const VERSION: u8 = 2;'],
  // An optional field that is added.
  ['src/message.rs', '    pub template: Option<WireTemplate>,\n}\n\nimpl Message', '    pub template: Option<WireTemplate>,\n    /// New.\n    #[n(50)]\n    pub mood: Option<String>,\n}\n\nimpl Message'],
  ['src/message.rs', 'parent_id: None,', 'parent_id: None, mood: None,'],
  ['src/history/join.rs', 'parent_id: None,', 'parent_id: None, mood: None,'],
  ['src/session_head.rs', '    pub unknown: UnknownFields,\n}\nrewritten!(struct SessionHead {', '    pub unknown: UnknownFields,\n    /// New.\n    pub mood: Option<String>,\n}\nrewritten!(struct SessionHead { 50 => mood,'],
  ['src/session_head.rs', 'unknown: UnknownFields::default(),', 'unknown: UnknownFields::default(), mood: None,'],
  // A variant that is added.
  ['src/message.rs', '    History,\n}', '    History,\n    /// New.\n    #[n(3)]\n    Plugin,\n}'],
  ['src/message.rs', 'Self::History => "history",', 'Self::History => "history", Self::Plugin => "plugin",'],
  // Fields that are removed: no number, so neither written nor read.
  ['src/message.rs', '#[n(9)]\n    pub parent_id', '#[cbor(skip)]\n    pub parent_id'],
  ['src/session_head.rs', '    4 => title,\n', ''],
];

function laterSource(folder) {
  cpSync(path.join(root, 'src'), path.join(folder, 'src'), { recursive: true });
  for (const [file, text, replacement] of CHANGES) {
    const at = path.join(folder, file);
    const source = readFileSync(at, 'utf8');
    if (!source.includes(text)) throw new Error(`${file} has no ${JSON.stringify(text)} any more: change tests/evolution/builds.mjs with it`);
    writeFileSync(at, source.replace(text, replacement));
  }
  const manifest = readFileSync(path.join(root, 'Cargo.toml'), 'utf8');
  // Its tests stay behind.
  writeFileSync(path.join(folder, 'Cargo.toml'), `${manifest.slice(0, manifest.search(/^\[\[(test|bench|example)\]\]/m))}\n[workspace]\n`);
}

function program(name, crate, features) {
  const folder = path.join(place, name);
  mkdirSync(path.join(folder, 'src'), { recursive: true });
  cpSync(path.join(root, 'tests/evolution/program.rs'), path.join(folder, 'src/main.rs'));
  cpSync(path.join(root, 'Cargo.lock'), path.join(folder, 'Cargo.lock'));
  writeFileSync(path.join(folder, 'Cargo.toml'), `[package]
name = "program-${name}"
edition = "2024"
[features]
next = []
default = [${features}]
[dependencies]
rethread = { path = ${JSON.stringify(crate)}, default-features = false }
[workspace]
`);
  // A folder each: with one for both, cargo once took one build's crate for the other's.
  const own = path.join(target, `evolution-${name}`);
  execFileSync('cargo', ['build', '--quiet', '--offline', '--manifest-path', path.join(folder, 'Cargo.toml'), '--target-dir', own], { stdio: ['ignore', 'inherit', 'inherit'] });
  return path.join(own, 'debug', `program-${name}`);
}

/** Builds both, and returns a function that runs a command of one of them on a file. */
export function twoBuilds() {
  rmSync(place, { recursive: true, force: true });
  const later = path.join(place, 'later-source');
  laterSource(later);
  const programs = { now: program('now', root, ''), later: program('later', later, '"next"') };
  return (build, ...command) => {
    const out = execFileSync(programs[build], command, { encoding: 'utf8' });
    return out ? JSON.parse(out) : undefined;
  };
}

export const databaseFile = (name) => path.join(place, `${name}.txt`);
