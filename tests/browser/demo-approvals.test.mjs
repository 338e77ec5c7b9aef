// r29 in the demo: a tool that sends money asks before, over a reload and in another tab.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

const button = (page, name) => page.getByRole('group', { name: 'Approval' }).getByRole('button', { name });
const NAME = '<img src=x onerror="window.owned = true">';

describe('r29 the demo asks before it sends money', { concurrency: 3 }, () => {
  test('approved after a reload, the tool runs once; the text of the model stays text', async () => {
    const guest = await Guest.visit(demo, 'approve');
    const { page } = guest;
    await guest.ask(`Please send 20 euros to ${NAME}`);
    await guest.card('send_money', 'asking').waitFor();
    assert.deepEqual(await guest.runs(), {});
    await guest.reload();
    await guest.card('send_money', 'asking').waitFor();
    await guest.notice('Waiting for your approval').waitFor();
    assert.match(await guest.card('send_money').locator('pre').first().innerText(), /<img src=x onerror=/);
    assert.equal(await page.locator('#conversation img').count(), 0);
    await button(page, 'Approve').click();
    await guest.card('send_money', 'ok').waitFor();
    await guest.answered();
    assert.match(await guest.words(), /20 € were sent to <img/);
    assert.deepEqual(await guest.runs(), { send_money: 1 });
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.equal((await guest.control('requests')).length, 2);
    await guest.reload();
    assert.equal(await page.locator('.notice').count(), 0);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('rejected with a reason, which the model sees', async () => {
    const guest = await Guest.visit(demo, 'reject');
    const { page } = guest;
    await guest.ask('Please send 20 euros to Ada.');
    await page.getByLabel('Reason for rejecting').fill('too much');
    await button(page, 'Reject').click();
    await guest.card('send_money', 'rejected').waitFor();
    await guest.answered();
    assert.match(await guest.words(), /rejected, so the tool did not run: too much/);
    assert.deepEqual(await guest.runs(), {});
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('decided in another tab', async () => {
    const guest = await Guest.visit(demo, 'elsewhere');
    await guest.ask('Please send 20 euros to Ada.');
    await guest.card('send_money', 'asking').waitFor();
    const session = new URL(guest.page.url()).searchParams.get('session');
    const other = await guest.tab(`&session=${session}`);
    await button(other, 'Approve').click();
    await guest.card('send_money', 'ok', other).waitFor();
    await guest.card('send_money', 'ok').waitFor();
    assert.equal(await button(guest.page, 'Approve').isVisible(), false);
    assert.deepEqual(await guest.runs(), { send_money: 1 });
    await guest.answered(other);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('of two calls with one id the approved one runs; characters that hide are shown', async () => {
    const guest = await Guest.visit(demo, 'same-id');
    const pay = (to, amount) => ({ id: 'call_same', name: 'send_money', arguments: { to, amount } });
    await guest.control('script', {
      steps: [{ calls: [pay('Ada', 20), pay('\u202eadA\u200b', 30)] }, { text: 'All done.' }],
    });
    await guest.ask('Pay both.');
    await guest.card('send_money', 'asking').nth(1).waitFor();
    assert.match(await guest.card('send_money').nth(1).locator('pre').first().innerText(), /\\u202eadA\\u200b/);
    await button(guest.page, 'Approve').nth(1).click();
    await guest.card('send_money', 'ok').waitFor();
    const ran = (await guest.control('tools'))
      .filter(({ phase }) => phase === 'start')
      .map(({ arguments: { amount } }) => amount);
    assert.deepEqual(ran, [30]);
    await guest.answered();
    await button(guest.page, 'Reject').click();
    await guest.card('send_money', 'rejected').waitFor();
    await guest.answered();
    assert.match(await guest.words(), /All done/);
    assert.deepEqual(await guest.runs(), { send_money: 1 });
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('interrupted while it ran, it is announced that it asks again, and it does', async () => {
    const guest = await Guest.visit(demo, 'interrupted');
    const { page } = guest;
    await guest.ask('Please send 20 euros to Ada.');
    await guest.hold('send_money');
    await button(page, 'Approve').click();
    await until('send_money hangs', async () =>
      (await guest.control('waiting')).some(({ name }) => name === 'send_money'),
    );
    await guest.reload();
    const bar = guest.notice('This run was interrupted');
    await bar.waitFor();
    assert.match(await bar.innerText(), /One was interrupted; you will be asked before it runs again/);
    await guest.control('release', {});
    await bar.getByRole('button', { name: 'Resume' }).click();
    await guest.card('send_money', 'asking').waitFor();
    await button(page, 'Reject').click();
    await guest.card('send_money', 'interrupted').waitFor();
    await guest.answered();
    assert.deepEqual(await guest.runs(), { send_money: 1 });
    assert.deepEqual(await guest.leave({ complaints: /net::ERR|Failed to load resource/ }), CLEAN);
  });
});
