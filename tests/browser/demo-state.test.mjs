// Issue 12 in the demo: who owns the conversation, what went out as a delta, and the chat as a file.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { open } from 'rethread';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

const QUESTION = 'How is the weather in Oslo, and what time is it there?';
const HOSTILE = '<img src=x onerror="window.owned = true">';

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

const line = (guest) => guest.page.locator('#chat-details-line').innerText();
const message = (guest) => guest.page.locator('#chat-details [role=alert]');

async function openDetails({ page }) {
  await page.locator('#chat-details-open').click();
  await page.locator('#chat-details').waitFor();
}
const closeDetails = ({ page }) => page.locator('#chat-details-close').click();

async function chooseOwner(guest, owner, id = '') {
  await openDetails(guest);
  await guest.page.locator(`#chat-details [name=owner][value=${owner}]`).check();
  if (owner === 'conversation') await guest.page.locator('#chat-details [name=conversation]').fill(id);
  await guest.page.locator('#owner-apply').click();
  await message(guest).filter({ hasText: 'The owner is now' }).waitFor();
  await closeDetails(guest);
}

/** The types of the items of each request, in order. */
const sentTypes = async (guest) =>
  (await guest.control('requests')).map(({ body }) => body.input.map(({ type, role }) => type ?? role));

async function saved(guest, button) {
  const [file] = await Promise.all([guest.page.waitForEvent('download'), guest.page.locator(button).click()]);
  return { name: file.suggestedFilename(), path: await file.path() };
}

const choose = (guest, files) => guest.page.locator('#restore-file').setInputFiles(files);
const counted = (guest) => guest.page.locator('#sessions li[data-session]').count();

describe('r22 r23 r37 the demo and the details of a chat', { concurrency: 3 }, () => {
  test('r22 r23 a chain of responses gets what is new, and the page shows it; the way back replays all', async () => {
    const guest = await Guest.visit(demo, 'chain');
    const { page } = guest;
    assert.equal(await line(guest), 'Owner: this page');
    await openDetails(guest);
    await page.locator('#export-lines').click();
    await message(guest).filter({ hasText: 'Nothing of this chat is stored yet.' }).waitFor();
    assert.equal(
      await page.locator('#chat-details [value=response]').isDisabled(),
      true,
      'OpenAI chat has no such service',
    );
    assert.match(await page.locator('#owner-hint').innerText(), /Only OpenAI Responses/);
    await closeDetails(guest);
    await guest.settings({ dialect: 'openai-responses' });
    await chooseOwner(guest, 'response');
    await guest.ask(QUESTION);
    assert.deepEqual(await sentTypes(guest), [
      ['user'],
      ['function_call_output', 'function_call_output'],
      ['function_call_output'],
    ]);
    assert.equal(
      await line(guest),
      'Owner: the service (chain of responses) · last request: 1 new item, the service had 8',
    );
    await openDetails(guest);
    const chain = (await guest.control('requests')).at(-1).body.previous_response_id;
    assert.match(
      await page.locator('#last-request p').innerText(),
      new RegExp(`^1 of 9 items was sent\\. The service had the other 8, up to the response ${chain}\\.$`),
    );
    assert.match(await page.locator('.request-items li').innerText(), /result\s*new\s*Oslo/);
    assert.equal(JSON.parse(await page.locator('#last-request pre').textContent()).previous_response_id, chain);
    await closeDetails(guest);

    await guest.reload();
    assert.equal(await line(guest), 'Owner: the service (chain of responses)', 'the owner is stored');
    await guest.ask('And in Rome?');
    assert.deepEqual((await sentTypes(guest)).slice(3), [
      ['user'],
      ['function_call_output', 'function_call_output'],
      ['function_call_output'],
    ]);
    await chooseOwner(guest, 'session');
    await guest.ask('Thanks.');
    assert.equal((await sentTypes(guest))[6].filter((type) => type === 'user').length, 3);
    assert.match(await line(guest), /^Owner: this page · last request: \d+ items, 3 new$/);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r22 r23 a conversation begins at the service, which then has the same items', async () => {
    const guest = await Guest.visit(demo, 'conversation');
    await guest.settings({ dialect: 'openai-responses' });
    await guest.ask(QUESTION);
    await chooseOwner(guest, 'conversation');
    await guest.ask('And in Rome?');
    const requests = await guest.control('requests');
    const [[id, items]] = Object.entries(await guest.control('conversations'));
    assert.equal(requests.at(-1).body.conversation?.id ?? requests.at(-1).body.conversation, id);
    assert.equal(requests.at(-1).body.input.length, 1);
    assert.equal(
      items.filter(({ role }) => role === 'user').length,
      2,
      'what it lacked went out with the first request',
    );
    assert.equal(new Set(items.map((item) => JSON.stringify(item))).size, items.length, 'nothing twice');
    assert.match(
      await line(guest),
      new RegExp(
        `^Owner: the service \\(conversation\\) · last request: 1 new item, the service had ${items.length - 2}$`,
      ),
    );

    // The other formats have no such service: in words, and nothing is lost.
    await guest.settings({ dialect: 'anthropic' });
    await guest.write('Hello?');
    await guest.notice('OpenAI Responses').waitFor();
    await until('the question is back', async () => (await guest.page.locator('#question').inputValue()) === 'Hello?');
    await guest.settings({ dialect: 'openai-responses' });
    await chooseOwner(guest, 'conversation', 'conv_unknown');
    await guest.write('Hello?');
    await guest.notice("Conversation with id 'conv_unknown' not found").waitFor();
    assert.deepEqual(await guest.leave({ refusals: [404], complaints: /404/ }), CLEAN);
  });

  for (const [form, button, extension] of [
    ['JSON Lines', '#export-lines', 'jsonl'],
    ['an opaque file', '#export-bytes', 'rethread'],
  ]) {
    test(`r37 a chat is exported as ${form} and restored: after it was deleted, as a copy, in another browser; markup in it stays text`, async () => {
      const guest = await Guest.visit(demo, `files-${extension}`);
      const { page } = guest;
      await guest.settings({ hostile: true });
      await guest.ask(`What does the web say about Rome? ${HOSTILE}`);
      await guest.card('read_page', 'ok').first().waitFor();
      const words = await guest.words();
      await openDetails(guest);
      const { name, path } = await saved(guest, button);
      assert.match(name, new RegExp(`^What-does-the-web-say-about-Rome-img-src.*\\.${extension}$`));

      await choose(guest, path);
      await guest.notice('restored as a copy').waitFor();
      assert.equal(await guest.words(), words);
      await until('two chats', async () => (await counted(guest)) === 2);

      const other = await Guest.visit(demo, `restored-${extension}`);
      await openDetails(other);
      await choose(other, path);
      await other.notice('was restored').waitFor();
      assert.equal(await other.words(), words);
      assert.equal(
        new URL(other.page.url()).searchParams.get('session') === new URL(page.url()).searchParams.get('session'),
        false,
        'the copy is another chat',
      );
      for (const shown of [page, other.page]) {
        assert.equal(
          await shown.locator('#conversation img, #conversation script, #notices img, #sessions img').count(),
          0,
        );
        assert.equal(await shown.evaluate(() => window.owned), undefined);
      }
      await other.reload();
      assert.equal(await other.words(), words);
      await other.ask('And in Oslo?');
      assert.deepEqual(await other.leave(), CLEAN);
      assert.deepEqual(await guest.leave(), CLEAN);
    });
  }

  test('r37 a chat of an application is restored, with an owner and times that this page does not give, and goes on here', async () => {
    const client = await open({ store: 'memory', now: () => Number.MAX_SAFE_INTEGER });
    const session = await client.session('s', { owner: { kind: 'caller' }, title: '' });
    await session.append([
      { role: 'user', parts: [{ type: 'text', text: 'My name is Ada.' }] },
      { role: 'assistant', parts: [{ type: 'text', text: 'Hello Ada.' }] },
    ]);
    const buffer = Buffer.from(await client.exportSession('s'));
    await client.close();

    const guest = await Guest.visit(demo, 'application');
    const { page } = guest;
    await openDetails(guest);
    await choose(guest, { name: 'chat.jsonl', mimeType: 'application/jsonl', buffer });
    await guest.notice('"Untitled" was restored.').waitFor();
    await until('one chat', async () => (await counted(guest)) === 1);
    assert.equal(await page.locator('#sessions .session-title').innerText(), 'Untitled');
    assert.equal(await line(guest), 'Owner: an application');
    await guest.write('Hello?');
    await guest.notice('Choose this page as the owner').waitFor();
    await openDetails(guest);
    assert.match(await page.locator('#owner-hint').innerText(), /^An application keeps this conversation/);
    assert.equal(await page.locator('#owner-apply').isVisible(), false);
    await closeDetails(guest);
    await chooseOwner(guest, 'session');
    await guest.ask('Hello?');
    assert.match(await line(guest), /^Owner: this page · last request/);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r37 files that cannot be restored are refused in words, and nothing is stored', async () => {
    const guest = await Guest.visit(demo, 'refused');
    await guest.ask(`My name is ${HOSTILE}`);
    await openDetails(guest);
    const { path } = await saved(guest, '#export-lines');
    const lines = await readFile(path, 'utf8');
    const at = `${path}-changed`;
    const files = {
      'edited.jsonl': [lines.replace('My name', 'My game'), /Line \d+ of it was changed or cut off/],
      'cut.jsonl': [lines.slice(0, -40), /changed or cut off/],
      'other.jsonl': ['{"hello":"<img src=x onerror=\'window.owned = true\'>"}\n', /was not restored/],
      'photo.png': [Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]), /It is damaged or cut off, or no file of a chat/],
      'empty.rethread': ['', /It is damaged or cut off, or no file of a chat/],
      '<img src=x onerror=window.owned=1>.jsonl': ['{', /was not restored/],
    };
    for (const [name, [content, expected]] of Object.entries(files)) {
      await writeFile(at, content);
      await choose(guest, { name, mimeType: 'application/octet-stream', buffer: await readFile(at) });
      await message(guest)
        .filter({ hasText: `"${name}"` })
        .waitFor();
      const text = await message(guest).innerText();
      assert.match(text, expected);
      assert.match(text, /Nothing was stored/);
    }
    await closeDetails(guest);
    assert.equal(await counted(guest), 1);
    assert.equal(await guest.page.locator('#chat-details img').count(), 0);
    assert.equal(await guest.page.evaluate(() => window.owned), undefined);
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});
