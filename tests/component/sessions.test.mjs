// The engine and the web build keep sessions with one core: they render the same bodies, byte for byte.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from '../../js/entry/node.js';
import { DIALECTS, recorded } from './bodies.mjs';
import { fileOf, loadComponent } from './component.mjs';
import { memoryKeyvalue } from './keyvalue.mjs';
import { newStore, moment, SETTINGS, stepper } from './stepping.mjs';

/** Every ninth recorded request: each is rendered in every dialect, by three builds. */
const requests = recorded().filter((_, at) => at % 9 === 0);
const AT = 1_700_000_000_000;

let web;
const worlds = {};
before(async () => {
  web = await open({ store: 'memory' });
  worlds.engine = await loadComponent('engine');
  worlds.stored = await loadComponent('stored', memoryKeyvalue());
});
after(async () => {
  await web?.close();
  for (const { remove } of Object.values(worlds)) remove();
});

/** What a build answered: the body's bytes, or the code of the error. */
const settled = async (work) => {
  try {
    return Buffer.from(await work()).toString('latin1');
  } catch ({ code, message }) {
    assert.ok(code, message);
    return code;
  }
};

for (const world of ['engine', 'stored']) {
  describe(`the world \`${world}\``, () => {
    let commands;
    before(() => {
      const { Engine } = worlds[world].exports.sessions;
      commands = stepper(Engine.open({ ...SETTINGS, name: 'bodies' }, moment()), newStore());
    });

    test(`r51 ${requests.length} recorded conversations are rendered as the web build renders them`, async () => {
      let rendered = 0;
      for (const [at, { dialect, body }] of requests.entries()) {
        const id = `${world}-${at}`;
        const session = await web.session(id);
        const appended = await settled(async () => {
          await session.append(new Uint8Array(body), dialect, { at: AT });
          return 'appended';
        });
        const there = await settled(() => {
          commands.command('append', { session: `${id}-own`, body, dialect, expectedRevision: undefined });
          return 'appended';
        });
        assert.equal(there, appended, `${dialect}: ${body.toString('latin1').slice(0, 1000)}`);
        if (appended !== 'appended') continue;
        // Ids of calls without one are made of the ids of messages, which are random: so these go with the session.
        commands.command('restore', { archive: await session.serialize(), session: undefined });
        for (const target of DIALECTS) {
          const request = { dialect: target, input: 'And then?', replay: { freshness: 'Infinity' } };
          const expected = await settled(async () => {
            const replay = { freshness: Number.POSITIVE_INFINITY };
            return (await session.render({ ...request, replay })).body;
          });
          const actual = await settled(
            () => commands.command('render', { session: id, options: JSON.stringify(request) }).body,
          );
          assert.equal(actual, expected, `${dialect} to ${target}: ${body.toString('latin1').slice(0, 1000)}`);
          rendered += 1;
        }
      }
      assert.ok(rendered > 200, `${rendered} bodies`);
    });

    test('r51 a session goes to another engine as bytes, and to the web build', async () => {
      const body = Buffer.from(
        '{"messages":[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hi."}]}',
      );
      commands.command('append', { session: 'moved', body, dialect: 'openai-chat', expectedRevision: undefined });
      const archive = commands.command('serialize', 'moved');
      const info = commands.command('restore', { archive, session: 'copy' });
      assert.equal(info.id, 'copy');
      const restored = await web.restore(new Uint8Array(archive), { id: `web-${world}` });
      const page = await restored.messages();
      const { items } = commands.command('messages', { session: 'copy', cursor: undefined, limit: undefined });
      const plain = (messages) => messages.map(({ role, parts }) => [role, parts.map(({ text }) => text)]);
      assert.deepEqual(plain(JSON.parse(items)), plain(page.items));
      const listed = JSON.parse(commands.command('sessions', { limit: 10_000 }).items).map(({ id }) => id);
      assert.ok(listed.includes('copy') && listed.includes('moved'));
      const search = { text: 'hi hello', channel: undefined, cursor: undefined, limit: 100 };
      const found = JSON.parse(commands.command('search', search).items);
      const hit = found.find(({ session }) => session.id === 'copy');
      assert.deepEqual(hit.title, null);
      const same = (await web.search('hi hello')).items.find(({ session }) => session.id === `web-${world}`);
      const excerpts = (messages) => messages.map(({ role, text, ranges }) => ({ role, text, ranges }));
      assert.deepEqual(excerpts(hit.messages), excerpts(same.messages));
      assert.deepEqual(hit.messages[0].ranges, [[0, 2]]);
      commands.command('delete-session', 'copy');
      assert.throws(
        () => commands.command('append', { session: 'moved', body, dialect: 'openai-chat', expectedRevision: 7n }),
        ({ code }) => code === 'conflict',
      );
    });
  });
}

test('r51 the world engine runs under wasmtime with nothing to import', () => {
  const program = fileURLToPath(new URL('engine_under_wasmtime.py', import.meta.url));
  const { status, stdout, stderr } = spawnSync('python3', [program, fileOf('engine')], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { asked: ['head'], session: 's', isSame: true });
});
