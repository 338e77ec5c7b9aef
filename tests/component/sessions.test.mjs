// The engine and the web build keep sessions with one core: they render the same bodies, byte for byte.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from '../../js/entry/node.js';
import { DIALECTS, recorded } from './bodies.mjs';
import { fileOf, loadComponent } from './component.mjs';
import { Keyvalue, memoryKeyvalue } from './keyvalue.mjs';
import { newStore, moment, SETTINGS, stepper } from './stepping.mjs';

/** Every ninth recorded request: each is rendered in every dialect, by three builds. */
const requests = recorded().filter((_, at) => at % 9 === 0);
const AT = 1_700_000_000_000;

let web;
const worlds = {};
/** The bucket of the world `stored`. */
const bucket = new Keyvalue();
before(async () => {
  web = await open({ store: 'memory' });
  worlds.engine = await loadComponent('engine');
  worlds.stored = await loadComponent('stored', memoryKeyvalue(bucket));
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
    let store;
    before(() => {
      const { Engine } = worlds[world].exports.sessions;
      store = newStore();
      commands = stepper(Engine.open({ ...SETTINGS, name: 'bodies' }, moment()), store);
    });

    /** The bytes of all values that the store has now. */
    const storedText = () => {
      const values = world === 'engine' ? store.values() : bucket.values();
      return Buffer.concat(values).toString('latin1');
    };

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

    const turn = (text, answer) =>
      Buffer.from(
        JSON.stringify({
          messages: [
            { role: 'user', content: text },
            { role: 'assistant', content: answer },
          ],
        }),
      );
    const append = (session, body, branch) =>
      commands.command('append', { session, body, dialect: 'openai-chat', expectedRevision: undefined, branch });
    const textsOf = (session, branch) => {
      const { items } = commands.command('messages', { session, cursor: undefined, limit: undefined, branch });
      return JSON.parse(items).map(({ parts }) => parts[0].text);
    };

    test('r38 r51 a branch is forked, written to, listed and shown', () => {
      const first = append('tree', turn('One.', 'First.'));
      append('tree', turn('Two.', 'Second.'));
      const branch = commands.command('fork', { session: 'tree', after: first.messageIds[1] });
      append('tree', turn('Other.', 'Third.'), branch);
      assert.deepEqual(textsOf('tree'), ['One.', 'First.', 'Two.', 'Second.']);
      assert.deepEqual(textsOf('tree', branch), ['One.', 'First.', 'Other.', 'Third.']);
      const listed = JSON.parse(commands.command('branches', 'tree'));
      assert.deepEqual(
        listed.map(({ branch: name, kind, parent, forkedAfter, messageCount }) => [
          name,
          kind,
          parent,
          forkedAfter,
          messageCount,
        ]),
        [
          ['main', 'main', null, null, 4],
          [branch, 'fork', 'main', first.messageIds[1], 4],
        ],
      );
      commands.command('switch-to', { session: 'tree', branch });
      assert.deepEqual(textsOf('tree'), ['One.', 'First.', 'Other.', 'Third.']);
      assert.throws(
        () => commands.command('switch-to', { session: 'tree', branch: 'nowhere' }),
        ({ code }) => code === 'not_found',
      );
      assert.throws(
        () => append('tree', turn('Lost.', 'Lost.'), 'nowhere'),
        ({ code }) => code === 'not_found',
      );
    });

    test('r59 r51 erased messages are in no branch and in no byte of the store', () => {
      const secret = `marker-${world}`;
      append('erased', turn('One.', 'First.'));
      const named = append('erased', turn(`Two, ${secret}.`, `Second, ${secret}.`));
      const branch = commands.command('fork', { session: 'erased', after: named.messageIds[1] });
      append('erased', turn('Three.', 'Third.'));
      assert.ok(storedText().includes(secret), 'the store has it before');
      const erasure = { session: 'erased', messageIds: [named.messageIds[0]] };
      const receipt = JSON.parse(commands.command('delete-messages', erasure));
      assert.deepEqual(receipt.messages, [named.messageIds[0]]);
      assert.ok(receipt.bytes > 0 && receipt.unreached.length > 0, JSON.stringify(receipt));
      commands.command('delete-messages', { session: 'erased', messageIds: [named.messageIds[1]] });
      assert.deepEqual(textsOf('erased'), ['One.', 'First.', 'Three.', 'Third.']);
      assert.deepEqual(textsOf('erased', branch), ['One.', 'First.']);
      assert.ok(!storedText().includes(secret), 'a value of the store still has it');
      assert.throws(
        () => commands.command('delete-messages', { session: 'erased', messageIds: [] }),
        ({ code }) => code === 'invalid_input',
      );
    });

    test('r39 r59 r51 prune erases the old turns of each session, and a dry run says which', () => {
      for (const id of ['old', 'older']) for (const at of [1, 2, 3]) append(id, turn(`${id} ${at}`, `Yes, ${at}.`));
      const options = { keepNewestTurns: 1, session: 'old' };
      const expected = { removed: 4, sessions: [{ session: 'old', removed: 4, left: 2 }], failed: [] };
      const dry = JSON.parse(commands.command('prune', JSON.stringify({ ...options, dryRun: true })));
      assert.deepEqual(dry, expected);
      assert.equal(textsOf('old').length, 6);
      assert.deepEqual(JSON.parse(commands.command('prune', JSON.stringify(options))), expected);
      assert.deepEqual(textsOf('old'), ['old 3', 'Yes, 3.']);
      assert.equal(textsOf('older').length, 6);
      assert.throws(
        () => commands.command('prune', '{"session":"old"}'),
        ({ code }) => code === 'config_invalid',
      );
    });

    test('r79 r51 title, channel, metadata and archive are changed: absent keeps, null clears', () => {
      append('listed', turn('One.', 'First.'));
      const update = (fields) => commands.command('update', { session: 'listed', fields: JSON.stringify(fields) });
      const row = () =>
        JSON.parse(commands.command('sessions', { limit: 10_000 }).items).find(({ id }) => id === 'listed');
      update({ title: 'A title', metadata: { a: [1] }, archived: true });
      const { title, metadata, archived, channel } = row();
      assert.deepEqual([title, metadata, archived, channel], ['A title', { a: [1] }, true, null]);
      update({ title: null, channel: 'mail' });
      const changed = row();
      assert.deepEqual(
        [changed.title, changed.metadata, changed.archived, changed.channel],
        [null, { a: [1] }, true, 'mail'],
      );
      assert.throws(
        () => update({ name: 'x' }),
        ({ code }) => code === 'config_invalid',
      );
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
