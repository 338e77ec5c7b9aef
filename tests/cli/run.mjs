// The command line as a program of its own: what it is given, what it says, how it ends.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../../js/cli.js', import.meta.url));

/** {code, out, err}; `out` as text, exactly as it was written. */
export function rethread(args, { input = '', env = {}, cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], { cwd, env: { ...process.env, ...env } });
    const pieces = { stdout: [], stderr: [] };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (piece) => pieces[name].push(piece));
    child.once('error', reject);
    child.once('close', (code) =>
      resolve({ code, out: Buffer.concat(pieces.stdout).toString(), err: Buffer.concat(pieces.stderr).toString() }),
    );
    child.stdin.on('error', () => {}); // it may end without having read
    child.stdin.end(input);
  });
}

/** A folder with these files: {folder, remove}. */
export function folderWith(files) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-cli-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), content);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

const call =
  '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\\"n\\":1.0}"}}]}';
const head = '{"role":"user","content":"half \\ud83d, 1\\u00e9","n":12345678901234567890.10}';

/** Messages as they were written, with digits and escapes that JSON.parse would change. */
export const messages = {
  head,
  call,
  result: '{"role":"tool","tool_call_id":"call_1","content":"ok"}',
  stray: '{"role":"tool","tool_call_id":"nowhere","content":"?"}',
  last: '{"role":"user","content":"well?"}',
};
export const body = (...list) => `{"model":"m",  "seed":1.50,"messages":[${list.join(', ')}]}\n`;
