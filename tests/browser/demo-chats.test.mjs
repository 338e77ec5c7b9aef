// r52 in the demo: the list and its archive, versions of messages, erasure, and results that come later.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

const QUESTION = 'How is the weather in Oslo, and what time is it there?';

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

const button = (guest, name) => guest.page.getByRole('button', { name });
const titles = ({ page }) => page.locator('#sessions .session-title').allInnerTexts();

/** Stores chats with one message each, in the database of the page. */
const storeChats = ({ page }, count) =>
  page.evaluate(async (count) => {
    const { open } = await import('rethread');
    const db = await open({ name: new URL(location.href).searchParams.get('db') });
    for (let at = 0; at < count; at += 1) {
      const session = await db.session(`chat-${at}`, { title: `Chat ${at}` });
      await session.append([{ role: 'user', parts: [{ type: 'text', text: `Message ${at}` }] }]);
    }
    await db.close();
  }, count);

describe('r52 the chats of the demo', { concurrency: 3 }, () => {
  test('r52 r79 chats are found by their titles and messages, and what was found is marked', async () => {
    const guest = await Guest.visit(demo, 'search');
    const { page } = guest;
    await storeChats(guest, 45);
    await page.evaluate(async () => {
      const { open } = await import('rethread');
      const db = await open({ name: new URL(location.href).searchParams.get('db') });
      const session = await db.session('hostile', { title: '<img src=x onerror=alert(1)> Message' });
      await session.append([{ role: 'user', parts: [{ type: 'text', text: 'Café <b>Oslo</b>, message 7' }] }]);
      await db.close();
    });
    const field = page.getByRole('searchbox', { name: 'Search titles and messages' });
    await field.fill('MESSAGE 7');
    await until('two are found', async () => (await titles(guest)).length === 2);
    assert.deepEqual(await titles(guest), ['<img src=x onerror=alert(1)> Message', 'Chat 7']);
    assert.deepEqual(await page.locator('#sessions mark').allInnerTexts(), [
      'Message',
      'message',
      '7',
      '7',
      'Message',
      '7',
    ]);
    assert.equal(await page.getByRole('status').filter({ hasText: '2 chats' }).count(), 1);
    await field.fill('cafe oslo');
    await until('one is found', async () => (await titles(guest)).length === 1);
    await page.locator('#sessions .session').click();
    await page.locator('.message', { hasText: 'Café <b>Oslo</b>' }).waitFor();
    await field.fill('snow');
    await page.locator('#sessions .none', { hasText: 'No chat has these words.' }).waitFor();
    await field.fill('');
    await until('all are listed', async () => (await titles(guest)).length === 40);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 the list begins with the newest, continues on request, and a chat goes into the archive and out of it', async () => {
    const guest = await Guest.visit(demo, 'archive');
    const { page } = guest;
    await storeChats(guest, 45);
    const firstTitles = async () => (await titles(guest)).slice(0, 2).join();
    await until('the newest are listed', async () => (await firstTitles()) === 'Chat 44,Chat 43');
    assert.equal((await titles(guest)).length, 40);
    await button(guest, 'Show older chats').click();
    await until('all are listed', async () => (await titles(guest)).length === 45);
    assert.equal(await button(guest, 'Show older chats').isVisible(), false);

    await button(guest, 'Archive "Chat 43"').click();
    await until('it is gone', async () => !(await titles(guest)).includes('Chat 43'));
    assert.match(
      await page.evaluate(() => document.activeElement.textContent),
      /^Chat 42/,
      'the next row has the focus',
    );
    const announced = async () => (await page.locator('#announcer').innerText()) === '"Chat 43" is in the archive.';
    await until('it is announced', announced);
    await guest.reload();
    await page.getByRole('radio', { name: 'Archive' }).check({ force: true });
    await until('the archive is listed', async () => (await titles(guest)).join() === 'Chat 43');
    await page.locator('#sessions .session').click();
    await page.locator('.message', { hasText: 'Message 43' }).waitFor();
    await button(guest, 'Move "Chat 43" out of the archive').click();
    await page.locator('#sessions .none', { hasText: 'No chat is archived.' }).waitFor();
    await page.getByRole('radio', { name: 'Chats' }).check({ force: true });
    await until('it is in its place again', async () => (await titles(guest))[1] === 'Chat 43');
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 a question is edited, another answer is asked for, and each version is shown again', async () => {
    const guest = await Guest.visit(demo, 'versions');
    const { page } = guest;
    await guest.ask(QUESTION);
    const oslo = await guest.words();

    await button(guest, 'Edit the question').click();
    await page.locator('.edit textarea').press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'Edit the question');
    await button(guest, 'Edit the question').click();
    await page.locator('.edit textarea').fill('Is it warm in Rome?');
    await page.locator('.edit textarea').press('Enter');
    await page.locator('.message', { hasText: 'You asked: "Is it warm in Rome?"' }).waitFor();
    await guest.answered();
    assert.doesNotMatch(await guest.words(), /Oslo/);
    const versions = page.locator('.message.user .siblings');
    await versions.filter({ hasText: '2 / 2' }).waitFor();

    await button(guest, 'Ask for another answer').click();
    const ofAnswer = page.locator('.message.assistant .siblings:visible');
    await ofAnswer.filter({ hasText: '2 / 2' }).waitFor();
    await guest.answered();
    assert.deepEqual(await guest.runs(), { get_weather: 3, get_time: 3, get_forecast: 3 });

    await ofAnswer.getByRole('button', { name: 'Show the version before' }).click();
    await ofAnswer.filter({ hasText: '1 / 2' }).waitFor();
    await versions.getByRole('button', { name: 'Show the version before' }).click();
    await versions.filter({ hasText: '1 / 2' }).waitFor();
    await until('with its answer', async () =>
      (await guest.words()).replace('1 / 2', '').trim().endsWith(oslo.slice(-200).trim()),
    );
    await guest.reload();
    assert.match(await guest.words(), /You asked: "How is the weather in Oslo/, 'the choice outlives a reload');
    await guest.ask('And in Cairo?');
    const requests = await guest.control('requests');
    assert.doesNotMatch(requests.at(-1).bodyText, /Rome/, 'the other version is not sent');
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 an edit that was stopped leaves the versions as they were, and is asked again in its place', async () => {
    const guest = await Guest.visit(demo, 'stopped-edit');
    const { page } = guest;
    await guest.ask(QUESTION);
    await guest.hold('get_weather');
    await button(guest, 'Edit the question').click();
    await page.locator('.edit textarea').fill('Is it warm in Rome?');
    await page.getByRole('button', { name: 'Ask this instead' }).click();
    await guest.card('get_weather', 'running').waitFor();
    await page.locator('#stop').click();
    await guest.notice('Stopped. The chat is as it was before.').waitFor();
    await until('the first answer is shown', async () =>
      /You asked: "How is the weather in Oslo/.test(await guest.words()),
    );
    await guest.control('release', {});
    await guest.notice('Stopped.').getByRole('button', { name: 'Ask again' }).click();
    await page.locator('.message.user .siblings', { hasText: '2 / 2' }).waitFor();
    await guest.answered();
    assert.doesNotMatch(await guest.words(), /Oslo/);
    assert.deepEqual(await guest.leave({ complaints: /net::ERR|Failed to load resource/ }), CLEAN);
  });

  test('r52 an edit that failed, was cut off or waits for an approval is offered, since the chat shows what was before', async () => {
    const guest = await Guest.visit(demo, 'unfinished-edit');
    const { page } = guest;
    const edit = async (text) => {
      await button(guest, 'Edit the question').click();
      await page.locator('.edit textarea').fill(text);
      await page.locator('.edit textarea').press('Enter');
    };
    const versions = page.locator('.message.user .siblings');
    await guest.ask(QUESTION);
    await guest.control('script', { steps: Array(3).fill({ status: 500, message: 'the model has a cold' }) });
    await edit('Is it warm in Rome?');
    const failed = guest.notice('The edited question Is it warm in Rome? failed');
    await failed.filter({ hasText: 'the model has a cold' }).waitFor();
    assert.match(await guest.words(), /You asked: "How is the weather in Oslo/);
    await guest.reload();
    await failed.getByRole('button', { name: 'Retry' }).click();
    await versions.filter({ hasText: '2 / 2' }).waitFor();
    await guest.answered();
    await guest.noNotice();

    await guest.hold('get_time');
    await edit('Is it warm in Cairo?');
    await guest.card('get_weather', 'ok').waitFor();
    await until('get_time hangs', async () => (await guest.control('waiting')).some(({ name }) => name === 'get_time'));
    await guest.resultIsStored('get_weather');
    await guest.reload();
    await guest.notice('Is it warm in Cairo? was interrupted').getByRole('button', { name: 'Discard' }).click();
    await page.locator('.notice').waitFor({ state: 'detached' });
    assert.equal(await versions.innerText(), '2 / 2');
    await guest.control('release', {});

    await edit('Please send 20 euros to Ada.');
    await guest.card('send_money', 'asking').waitFor();
    await guest.answered(); // what is shown is stored
    await guest.reload();
    await guest.notice('waits for your approval').getByRole('button', { name: 'Show it' }).click();
    await guest.card('send_money', 'asking').waitFor();
    await button(guest, 'Approve').click();
    await versions.filter({ hasText: '3 / 3' }).waitFor();
    await guest.answered();
    assert.equal((await guest.runs()).send_money, 1);
    assert.deepEqual(await guest.leave({ refusals: [500], complaints: /500|net::ERR|Failed to load resource/ }), CLEAN);
  });

  test('r52 messages are erased with their calls, and the receipt says what it did not reach', async () => {
    const guest = await Guest.visit(demo, 'erase');
    const { page } = guest;
    await guest.ask(QUESTION);
    await guest.ask('Is it warm in Rome? My code is marker-7741.');
    assert.match((await guest.stored()).text, /marker-7741/);
    await button(guest, 'Inspector').click();
    await page.getByRole('tab', { name: 'Requests' }).click();
    await page.locator('tr[data-request="sent"]').getByRole('button').click();
    await page.locator('.request-detail', { hasText: 'marker-7741' }).waitFor();
    const erase = async (message, answer) => {
      await message.hover();
      await message.getByRole('button', { name: 'Erase this message' }).click();
      await page.locator('#confirm').getByRole('button', { name: answer }).click();
    };
    const asked = page.locator('.message.user', { hasText: 'marker-7741' });
    await erase(asked, 'Keep it');
    assert.equal(await asked.count(), 1);
    await erase(asked, 'Delete');
    await guest.notice('Erased: 1 message.').waitFor();
    assert.match(await guest.notice('Erased').innerText(), /The model's provider got the messages/);
    await erase(page.locator('.message.assistant', { hasText: 'marker-7741' }), 'Delete');
    await page.locator('.message', { hasText: 'marker-7741' }).waitFor({ state: 'detached' });
    const round = page.locator('.message.assistant', { has: page.locator('.call', { hasText: 'Rome' }) }).first();
    await round.hover();
    await round.getByRole('button', { name: 'Erase this message' }).click();
    assert.match(await page.locator('#confirm-text').innerText(), /its 2 calls and what came back/);
    await page.locator('#confirm').getByRole('button', { name: 'Delete' }).click();
    await guest.notice('1 message with 2 calls').waitFor();
    assert.doesNotMatch((await guest.stored()).text, /marker-7741/);
    await until('the page does not quote it', async () => !(await page.content()).includes('marker-7741'));
    await guest.ask('And in Cairo?');
    assert.doesNotMatch((await guest.control('requests')).at(-1).bodyText, /marker-7741/);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 the chat that was chosen last is shown, and each is opened once', async () => {
    const guest = await Guest.visit(demo, 'quick-clicks');
    const { page } = guest;
    await storeChats(guest, 2);
    await until('both are listed', async () => (await titles(guest)).length === 2);
    await page.evaluate(async () => {
      const { Chat } = await import('/chat.js');
      const { open } = Chat;
      window.opened = [];
      Chat.open = async (db, id, ...others) => {
        window.opened.push(id);
        if (id !== 'chat-0') return open.call(Chat, db, id, ...others);
        while (!document.querySelector('#conversation').innerText.includes('Message 1'))
          await new Promise((resolve) => setTimeout(resolve, 20));
        const late = await open.call(Chat, db, id, ...others);
        setTimeout(() => {
          window.isLate = true;
        });
        return late;
      };
      for (const id of ['chat-0', 'chat-0', 'chat-1'])
        document.querySelector(`[data-session="${id}"] .session`).click();
    });
    await page.locator('.message', { hasText: 'Message 1' }).waitFor();
    await until('the other one is open', () => page.evaluate(() => window.isLate));
    await guest.painted();
    assert.match(await guest.words(), /Message 1/);
    assert.match(page.url(), /session=chat-1/);
    assert.deepEqual(await page.evaluate(() => window.opened), ['chat-0', 'chat-1']);
    await page.locator('[data-session="chat-0"] .session').click();
    await page.locator('.message', { hasText: 'Message 0' }).waitFor();
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 a notice goes with its chat, and an edit that is being written keeps its place and the focus', async () => {
    const guest = await Guest.visit(demo, 'focus');
    const { page } = guest;
    await guest.ask(QUESTION);
    await guest.hold('get_weather');
    await button(guest, 'Ask for another answer').click();
    await guest.card('get_weather', 'running').waitFor();
    await page.locator('#stop').click();
    await guest.notice('Stopped. The chat is as it was before.').waitFor();
    await button(guest, 'New chat').click();
    await page.locator('.notice').waitFor({ state: 'detached' });
    await page.locator('#sessions .session').click();
    await button(guest, 'Edit the question').click();
    const edit = page.locator('.edit textarea');
    await guest.write('Is it warm in Rome?');
    await guest.card('get_weather', 'running').waitFor();
    await edit.fill('Is it warm in Cairo?');
    await edit.press('Enter');
    assert.equal(await edit.inputValue(), 'Is it warm in Cairo?', 'it waits for the answer');
    await guest.control('release', {});
    await guest.answered();
    await page.locator('.message', { hasText: 'You asked: "Is it warm in Rome?"' }).waitFor();
    assert.equal(await edit.evaluate((field) => field === document.activeElement), true);
    const edited = page.locator('.message.user', { has: edit });
    assert.equal(await edited.getByRole('button', { name: 'Edit the question' }).count(), 0);
    await edit.press('Enter');
    await page.locator('.message', { hasText: 'You asked: "Is it warm in Cairo?"' }).waitFor();
    await guest.answered();
    const focus = () => page.evaluate(() => document.activeElement.id);
    await until('the question has the focus', async () => (await focus()) === 'question');
    assert.deepEqual(await guest.leave({ complaints: /net::ERR|Failed to load resource/ }), CLEAN);
  });

  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic']) {
    test(`r52 an asynchronous call is answered in the page after a reload (${dialect})`, async () => {
      const guest = await Guest.visit(demo, `later-${dialect}`);
      const { page } = guest;
      await guest.settings({ dialect });
      await guest.ask('Ask Ada whether Friday suits her.');
      await guest.card('ask_person', 'awaiting').waitFor();
      assert.equal(await page.locator('.notice').count(), 0, 'the run is over');
      await guest.reload();
      await guest.card('ask_person', 'awaiting').waitFor();
      await page.getByRole('textbox', { name: 'The answer' }).fill('Friday is <b>fine</b>.');
      await button(guest, 'Send the answer').click();
      await guest.card('ask_person', 'ok').waitFor();
      await page.locator('.message', { hasText: /(answered|has come): "Friday is <b>fine<\/b>\."/ }).waitFor();
      await guest.answered();
      assert.equal(await page.locator('#conversation b').count(), 0);
      assert.match((await guest.control('requests')).at(-1).bodyText, /Friday is <b>fine/);
      assert.deepEqual(await guest.leave(), CLEAN);
    });
  }
});
