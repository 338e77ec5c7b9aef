// r52 in the demo: the keyboard, a screen reader, light and dark, a phone's width.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

const QUESTION = 'How is the weather in Oslo, and what time is it there?';
const TABS = ['Timeline', 'Requests', 'Journal', 'Sizes', 'Repair'];
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

/** What axe finds that is serious or critical, and what is wider than the screen. */
async function problems(page, state) {
  // Colours change in steps.
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {}))).then(() => {}),
  );
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return [
    ...violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${state}: ${id} at ${target}: ${failureSummary}`),
      ),
    ...(wide > 0 ? [`${state}: ${wide} px wider than the screen`] : []),
  ];
}

describe('r52 the demo for everybody', { concurrency: 2 }, () => {
  for (const [width, viewport] of [
    ['a desktop', { width: 1600, height: 900 }],
    ['a phone', { width: 390, height: 780 }],
  ]) {
    for (const colorScheme of ['light', 'dark']) {
      test(`r52 axe finds nothing serious on ${width}, ${colorScheme}, and nothing is wider than the screen`, async () => {
        const guest = await Guest.visit(demo, `axe-${viewport.width}-${colorScheme}`, {
          viewport,
          colorScheme,
          reducedMotion: 'reduce',
        });
        const { page } = guest;
        await page.evaluate(axe);
        const found = await problems(page, 'the first view');
        await guest.ask(QUESTION);
        await guest.ask('Ask Ada whether Friday suits her.');
        await guest.ask('Please send 20 euros to Ada.');
        await guest.card('send_money', 'asking').waitFor();
        found.push(...(await problems(page, 'the chat')));
        if (viewport.width < 760) {
          await page.getByRole('button', { name: 'Show the list of chats' }).click();
          await until('the list is there', () =>
            page.evaluate(
              () => getComputedStyle(document.querySelector('#sessions .session-title')).visibility === 'visible',
            ),
          );
          found.push(...(await problems(page, 'the list')));
          await page.keyboard.press('Escape');
        }
        await page.locator('#settings-open').click();
        found.push(...(await problems(page, 'the settings')));
        await page.locator('#settings').getByRole('button', { name: 'Cancel' }).click();
        await page.locator('#chat-details-open').click();
        found.push(...(await problems(page, 'the details')));
        await page.locator('#chat-details-close').click();
        if ((await page.locator('#inspector').isVisible()) === false) await page.locator('#inspector-open').click();
        for (const name of TABS) {
          await guest.inspect(name);
          if (name === 'Repair') {
            await page.getByRole('button', { name: 'Example: A refused request' }).click();
            await until('the example is there', async () => (await page.locator('#pasted-answer').inputValue()) !== '');
            await page.getByRole('button', { name: 'Explain and repair' }).click();
            await page.locator('.repair-result .rule-details summary').first().click();
            await page.locator('.repair-result .rule blockquote').first().waitFor();
          }
          found.push(...(await problems(page, name)));
        }
        assert.deepEqual(found, []);
        assert.deepEqual(await guest.leave(), CLEAN);
      });
    }
  }

  test('r52 the keyboard alone reaches all: the skip link, an edit, the tabs by arrows, the inspector and back', async () => {
    const guest = await Guest.visit(demo, 'keyboard', { viewport: { width: 1000, height: 800 } });
    const { page } = guest;
    const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.ariaLabel);
    await guest.ask(QUESTION);
    const first = 'a[href], button:not([hidden]), input, textarea, [tabindex="0"]';
    await page.evaluate((selector) => document.querySelector(selector).focus(), first);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the question');
    assert.ok((await page.locator('.skip').boundingBox()).y >= 0, 'it is seen');
    await page.keyboard.press('Enter');
    // The browser moves the focus before its next frame.
    await until('the question has the focus', async () => (await focus()) === 'question');

    await page.locator('#inspector-open').focus();
    await page.keyboard.press('Enter');
    assert.equal(await focus(), 'tab-timeline');
    assert.equal(await page.locator('#inspector-open').getAttribute('aria-expanded'), 'true');
    for (const [key, id] of [
      ['ArrowRight', 'tab-requests'],
      ['End', 'tab-repair'],
      ['ArrowRight', 'tab-timeline'],
      ['ArrowLeft', 'tab-repair'],
      ['Home', 'tab-timeline'],
    ]) {
      await page.keyboard.press(key);
      assert.equal(await focus(), id);
      assert.equal(await page.locator(`#${id}`).getAttribute('aria-selected'), 'true');
      assert.equal(await page.locator('[role=tabpanel]:visible').count(), 1);
    }
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, 'solid', 'the focus is visible');
    // What it covers takes no focus.
    for (let at = 0; at < 12; at += 1) {
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => Boolean(document.activeElement.closest('main'))), false);
    }
    await page.locator('#tab-timeline').focus();
    await page.keyboard.press('Escape');
    assert.equal(await focus(), 'inspector-open');

    await page.getByRole('button', { name: 'Edit the question' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type(' Please.');
    await page.keyboard.press('Enter');
    await page.locator('.message.user .siblings', { hasText: '2 / 2' }).waitFor();
    await guest.answered();
    await until('the question has the focus', async () => (await focus()) === 'question');
    assert.match(await guest.words(), /what time is it there\? Please\./);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 landmarks and live regions have names', async () => {
    const guest = await Guest.visit(demo, 'landmarks', { viewport: { width: 1600, height: 900 } });
    const { page } = guest;
    for (const [role, name] of [
      ['complementary', 'Chats'],
      ['complementary', 'Inspector'],
      ['navigation', 'Stored chats'],
      ['log', 'Conversation'],
      ['status', 'Notices'],
      ['tablist', 'Inspector'],
    ])
      assert.equal(await page.getByRole(role, { name, exact: true }).count(), 1, `${role} ${name}`);
    assert.equal(await page.getByRole('main').count(), 1);
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});
