// r29 in the demo: a tool that sends money asks before, over a reload and in another tab.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CLEAN, Guest, startDemo } from './demo-page.mjs';

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
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});
