// R67: two builds work on one database. The later one has fields that were added, a variant that was added, and fields
// that were removed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { databaseFile, twoBuilds } from './builds.mjs';

const run = twoBuilds();
const OK = { code: null };

test('r67 each build reads the records of the other one and loses nothing when it writes', () => {
  const file = databaseFile('beside');
  assert.deepEqual(run('now', file, 'append', 'a'), OK);
  // A field that the later build removed is skipped.
  assert.deepEqual(run('later', file, 'show'), {
    texts: ['a'],
    readOnly: null,
    findings: 0,
    title: null,
    parents: 0,
    calls: [],
    moods: 0,
    mood: null,
  });
  assert.deepEqual(run('later', file, 'append', 'b'), OK);
  // A field that it added is skipped; its head still has the title that it does not know.
  assert.deepEqual(run('now', file, 'show'), {
    texts: ['a', 'b'],
    readOnly: null,
    findings: 0,
    title: 'Title',
    parents: 2,
    calls: [],
  });
  assert.deepEqual(run('now', file, 'append', 'c'), OK);
  // The head's new field is there after a write by the build that does not know it.
  assert.deepEqual(run('later', file, 'show'), {
    texts: ['a', 'b', 'c'],
    readOnly: null,
    findings: 0,
    title: null,
    parents: 0,
    calls: [],
    moods: 2,
    mood: 'bright',
  });
});

test('r67 an audit row rewritten by an older build keeps the fields that it does not know', () => {
  const file = databaseFile('audit');
  assert.deepEqual(run('later', file, 'append-call'), OK);
  assert.deepEqual(run('later', file, 'show').calls, ['pending, calm']);
  assert.deepEqual(run('now', file, 'append-result'), OK);
  assert.deepEqual(run('now', file, 'show').calls, ['ok']);
  assert.deepEqual(run('later', file, 'show').calls, ['ok, calm']);
});

test('r67 an unknown variant makes the session read-only, and nothing is written', () => {
  const file = databaseFile('variant');
  assert.deepEqual(run('now', file, 'append', 'a'), OK);
  assert.deepEqual(run('later', file, 'append-variant', 'b'), OK);
  const before = readFileSync(file, 'utf8');
  const shown = run('now', file, 'show');
  assert.deepEqual([shown.texts, shown.readOnly, shown.findings], [['a'], 'unsupported_version', 1]);
  assert.deepEqual(run('now', file, 'append', 'c'), { code: 'unsupported_version' });
  assert.equal(readFileSync(file, 'utf8'), before);
  assert.deepEqual(run('later', file, 'show').texts, ['a', 'b']);
});

test('r67 a journal with fields of a newer build is not resumed by an older one, which would lose them', () => {
  const file = databaseFile('journal');
  run('later', file, 'write-journal');
  assert.deepEqual(run('now', file, 'read-journal'), { code: 'unsupported_version' });
  run('now', file, 'write-journal');
  // The entry is read; the error is about the entry with which a journal begins, which is missing.
  assert.deepEqual(run('later', file, 'read-journal'), { code: 'corrupt_record' });
});
