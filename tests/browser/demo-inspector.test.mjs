// r52 in the demo: the inspector beside the chat, and the place for a chat that a provider refuses.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { repair, validate } from 'rethread';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

const QUESTION = 'How is the weather in Oslo, and what time is it there?';
const HOSTILE = '<img src=x onerror="window.owned = true">';
const WIDE = { viewport: { width: 1600, height: 900 } };

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

const choose = ({ page }, name) => page.getByRole('tab', { name }).click();
const panel = ({ page }, name) => page.locator(`#panel-${name}`);
const row = ({ page }, name) => page.locator(`#panel-requests tr[data-request="${name}"]`);

/** Stores a chat with a result that is too old, and a call without one. */
const storeChat = ({ page }) =>
  page.evaluate(async () => {
    const { open } = await import('rethread');
    const db = await open({ name: new URL(location.href).searchParams.get('db') });
    const session = await db.session('old', { title: 'An old chat' });
    const finishedAt = Date.now() - 3_600_000;
    const call = (city, rest) => ({ type: 'tool', name: 'get_weather', arguments: { city }, ...rest });
    const say = (role, text) => ({ role, parts: [{ type: 'text', text }], createdAt: finishedAt });
    await session.append([
      say('user', 'Oslo?'),
      { role: 'assistant', createdAt: finishedAt, parts: [call('Oslo', { result: '20 °C', finishedAt })] },
      say('assistant', '20 °C.'),
      say('user', 'And Rome?'),
      { role: 'assistant', createdAt: finishedAt, parts: [call('Rome', {})] },
      say('user', 'Hello?'),
    ]);
    await db.close();
  });

describe('r52 the inspector', { concurrency: 3 }, () => {
  test('r52 the timeline has each round and tool, with the rows of the audit table', async () => {
    const guest = await Guest.visit(demo, 'timeline', WIDE);
    await guest.ask(QUESTION);
    const timeline = panel(guest, 'timeline');
    await until('three rows', async () => (await timeline.locator('tbody tr').count()) === 3);
    // The rows may be there before the end of the run is painted.
    await until('each span has an end', async () =>
      (await timeline.locator('.span-took').allInnerTexts()).every((took) => /^[\d.]+ m?s$/.test(took)),
    );
    assert.deepEqual(await timeline.locator('.span-name').allInnerTexts(), [
      'stand-in',
      'get_weather',
      'get_time',
      'stand-in',
      'get_forecast',
      'stand-in',
    ]);
    assert.match(await timeline.locator('.turn').innerText(), /3 model calls · 3 tool calls/);

    await guest.page.getByRole('button', { name: 'Edit the question' }).click();
    await guest.page.locator('.edit textarea').fill('Is it warm in Rome?');
    await guest.page.locator('.edit textarea').press('Enter');
    await guest.page.locator('.message', { hasText: 'You asked: "Is it warm in Rome?"' }).waitFor();
    await guest.answered();
    await until('six rows', async () => (await timeline.locator('tbody tr').count()) === 6);
    await until(
      'those of the other version are named',
      async () => (await timeline.locator('tbody tr', { hasText: 'in another version' }).count()) === 3,
    );
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 what each wire format would be sent stands beside its report, and what is repeated is marked', async () => {
    const guest = await Guest.visit(demo, 'requests', WIDE);
    const { page } = guest;
    await storeChat(guest);
    await page.locator('#sessions .session', { hasText: 'An old chat' }).click();
    await choose(guest, 'Requests');
    await page.setViewportSize({ width: 1200, height: 300 });
    const scroller = page.locator('#scroller');
    const above = () => scroller.evaluate((node) => node.scrollTop);
    const gap = () => scroller.evaluate((node) => node.scrollHeight - node.scrollTop - node.clientHeight);
    await until('the end of the chat stays in sight', async () => (await above()) > 0 && (await gap()) < 2);
    await page.setViewportSize(WIDE.viewport);
    await page.locator('#question').fill(`Hello ${HOSTILE}`);
    await panel(guest, 'requests')
      .filter({ hasText: `the question that you are writing: "Hello ${HOSTILE}"` })
      .waitFor();
    for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral', 'bedrock'])
      await row(guest, dialect)
        .filter({ hasText: /stale/ })
        .filter({ hasText: /repaired/ })
        .waitFor();
    await row(guest, 'anthropic').getByRole('button').click();
    const left = (locator) => locator.evaluate((node) => node.getBoundingClientRect().left);
    const table = page
      .locator('.wide-table', { has: page.locator('.requests') })
      .or(page.locator('.wide-table.requests'));
    const pressed = page.locator('.choice-button[aria-pressed=true]');
    assert.ok((await left(table)) <= (await left(pressed)), 'the mark of the choice is not cut off');
    const detail = page.locator('.request-detail');
    assert.equal(await detail.locator('h3').innerText(), 'Anthropic');
    assert.equal((await detail.locator('.finding[data-code="stale"]').count()) > 0, true);
    const body = await detail.locator('details').last().locator('pre').textContent();
    assert.deepEqual(
      validate(body, 'anthropic').filter(({ severity }) => severity === 'error'),
      [],
    );
    assert.match(body, /Hello <img/);
    assert.equal(await page.locator('#inspector img').count(), 0);
    await detail.locator('.finding[data-code="stale"] .rule-details summary').first().click();
    await detail.locator('.rule', { hasText: 'freshness window' }).first().waitFor();

    // What was sent, and what the next request repeats of it.
    await guest.ask(QUESTION);
    await row(guest, 'sent').waitFor();
    await row(guest, 'sent').getByRole('button').click();
    const sent = (await guest.control('requests')).at(-1).body;
    const whole = detail.locator('details').last().locator('pre');
    await until('it is the last request', async () => isDeepStrictEqual(JSON.parse(await whole.textContent()), sent));
    assert.match(
      await detail.innerText(),
      /\d+ items \(.*\) at the beginning are those of the request before.*The run reports .* repeated/,
    );
    assert.ok((await detail.locator('.items li.repeated').count()) > 0);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 a preview does not change what the next request is compared with', async () => {
    const guest = await Guest.visit(demo, 'preview', WIDE);
    await guest.ask(QUESTION);
    await guest.reload();
    await choose(guest, 'Requests');
    await guest.page.locator('#question').fill('And in Rome?');
    await row(guest, 'openai-chat').filter({ hasText: 'unchanged' }).waitFor();
    await guest.ask('And in Rome?');
    await choose(guest, 'Sizes');
    const requests = panel(guest, 'sizes').locator('table', { hasText: 'The last requests' }).locator('tr');
    await until('three requests', async () => (await requests.count()) === 3);
    // The first one after a reload repeats nothing of what this page has sent.
    assert.deepEqual(
      (await requests.allInnerTexts()).map((text) => /repeated/.test(text)),
      [false, true, true],
    );
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 a preview is of the version that is shown, or there is none', async () => {
    const guest = await Guest.visit(demo, 'preview-version', WIDE);
    const { page } = guest;
    await guest.ask(QUESTION);
    await page.getByRole('button', { name: 'Ask for another answer' }).click();
    await page.locator('.message.assistant .siblings', { hasText: '2 / 2' }).waitFor();
    await guest.answered();
    await choose(guest, 'Requests');
    await row(guest, 'anthropic').filter({ hasText: 'unchanged' }).waitFor();
    const other = await guest.tab(`&session=${new URL(page.url()).searchParams.get('session')}`);
    await other.getByRole('button', { name: 'Show the version before' }).click();
    await other.locator('.message.assistant .siblings', { hasText: '1 / 2' }).waitFor();
    await page.locator('#question').fill('And in Rome?');
    await panel(guest, 'requests').filter({ hasText: 'so there is no preview' }).waitFor();
    assert.equal(await row(guest, 'anthropic').count(), 0);
    assert.equal(await row(guest, 'sent').count(), 1);
    await page.getByRole('button', { name: 'Show the version before' }).click();
    await row(guest, 'anthropic').filter({ hasText: 'unchanged' }).waitFor();

    // The store of the previews is closed with the inspector, and opened with it.
    await page.getByRole('button', { name: 'Close the inspector' }).click();
    await page.getByRole('button', { name: 'Inspector' }).click();
    await page.locator('#question').fill('And in Cairo?');
    await panel(guest, 'requests').filter({ hasText: 'And in Cairo?' }).waitFor();
    await row(guest, 'anthropic').filter({ hasText: 'unchanged' }).waitFor();
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 what cannot be read is said in the place of another chat, and is read again', async () => {
    const guest = await Guest.visit(demo, 'unreadable', WIDE);
    const { page } = guest;
    await storeChat(guest);
    await guest.ask(QUESTION);
    const timeline = panel(guest, 'timeline');
    await until('three rows', async () => (await timeline.locator('tbody tr').count()) === 3);
    await page.evaluate(async () => {
      const { Chat } = await import('/chat.js');
      const { invocations } = Chat.prototype;
      Chat.prototype.invocations = async function (...query) {
        // The chat that is shown may be read once more.
        if (this.id !== 'old') return invocations.apply(this, query);
        Chat.prototype.invocations = invocations;
        throw new Error('The disk has a scratch.');
      };
    });
    await page.locator('#sessions .session', { hasText: 'An old chat' }).click();
    await timeline.filter({ hasText: 'The disk has a scratch.' }).waitFor();
    assert.equal(await timeline.locator('tbody tr').count(), 0);
    await page.locator('#question').fill('Hello?');
    await until('it is read', async () => (await timeline.locator('tbody tr').count()) === 2);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 the journal shows a run under way with its steps and effects, and is empty when the turn is in history', async () => {
    const guest = await Guest.visit(demo, 'journal', WIDE);
    await choose(guest, 'Journal');
    await guest.hold('get_time');
    await guest.write(QUESTION);
    await guest.card('get_weather', 'ok').waitFor();
    const journal = panel(guest, 'journal');
    await journal.locator('.run[data-state="live"]', { hasText: 'run_tool: get_time' }).waitFor();
    await journal.locator('.entries', { hasText: 'tool_finished' }).waitFor();
    const started = journal.locator('.entries code', { hasText: 'tool_started' });
    await until('both have started', async () => (await started.count()) === 2);
    await guest.reload();
    await choose(guest, 'Journal');
    await journal.locator('.run[data-state="interrupted"]', { hasText: /get_time\s+started/ }).waitFor();
    await guest.control('release', {});
    await guest.notice('This run was interrupted').getByRole('button', { name: 'Resume' }).click();
    await guest.answered();
    await journal.filter({ hasText: 'None: every turn is in history.' }).waitFor();
    await journal.locator('.events', { hasText: 'finished' }).waitFor();
    assert.deepEqual(await guest.leave({ complaints: /net::ERR|Failed to load resource/ }), CLEAN);
  });

  test('r52 sizes are those of the stored records', async () => {
    const guest = await Guest.visit(demo, 'sizes', WIDE);
    await guest.ask(QUESTION);
    await choose(guest, 'Sizes');
    const sizes = panel(guest, 'sizes');
    await sizes.locator('tr', { hasText: 'Audit table 3 records' }).waitFor();
    assert.match(await sizes.innerText(), /This chat: [\d.]+ KB in 5 records, 1 version\./);
    assert.equal(await sizes.locator('tr', { hasText: 'History 1 record' }).count(), 1);
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});

describe('r52 a chat that a provider refuses', { concurrency: 3 }, () => {
  const paste = async ({ page }, chat, answer = '') => {
    await page.locator('#pasted-chat').fill(chat);
    await page.locator('#pasted-answer').fill(answer);
    await page.getByRole('button', { name: 'Explain and repair' }).click();
  };
  const result = ({ page }) => page.locator('.repair-result');

  test('r52 is explained by its rules, repaired, and opened as a chat that goes on', async () => {
    const guest = await Guest.visit(demo, 'repair', WIDE);
    const { page } = guest;
    await choose(guest, 'Repair');
    await page.getByRole('button', { name: 'Example: A call without a result' }).click();
    await until('the example is there', async () =>
      (await page.locator('#pasted-chat').inputValue()).includes('Lisbon'),
    );
    const broken = await page.locator('#pasted-chat').inputValue();
    await page.getByRole('button', { name: 'Explain and repair' }).click();
    await result(guest).locator('h3', { hasText: 'OpenAI chat: 1 error' }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H3', 'the result has the focus');
    await result(guest).locator('.finding[data-code="dangling_call"] summary').click();
    await result(guest).locator('.rule', { hasText: 'Cure: add a tool message' }).waitFor();
    const link = result(guest).locator('.rule a');
    assert.equal(await link.innerText(), 'docs/rules/openai-chat.md');
    const page200 = await page.request.get(new URL(await link.getAttribute('href'), demo.url).href);
    assert.match(await page200.text(), /## dangling_call/);
    assert.deepEqual(
      JSON.parse(await result(guest).locator('pre.repaired').textContent()),
      JSON.parse(repair(broken, 'openai-chat').body),
    );
    await page.getByRole('button', { name: 'Open it as a chat' }).click();
    await page.locator('.message', { hasText: 'Hello?' }).waitFor();
    await guest.ask(QUESTION);
    assert.match(await guest.words(), /I called 3 tools/);
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 is repaired as the error of its provider says, and an error alone is explained', async () => {
    const guest = await Guest.visit(demo, 'heal', WIDE);
    const { page } = guest;
    await choose(guest, 'Repair');
    await page.getByRole('button', { name: 'Example: A refused request and the error' }).click();
    await until('the example is there', async () =>
      (await page.locator('#pasted-answer').inputValue()).includes('signature'),
    );
    const error = await page.locator('#pasted-answer').inputValue();
    await page.getByRole('button', { name: 'Explain and repair' }).click();
    await result(guest).locator('.finding[data-code="healed"]').waitFor();
    const healed = await result(guest).locator('pre.repaired').textContent();
    assert.match(healed, /AAAA/);
    assert.doesNotMatch(healed, /BBBB/);
    await paste(guest, '', error);
    await result(guest).locator('h3', { hasText: 'This error is known.' }).waitFor();
    await result(guest).locator('.rule', { hasText: 'remove the thinking blocks' }).waitFor();
    await paste(guest, 'The sky is blue over here today.');
    await result(guest).locator('h3', { hasText: 'no error that the rules know' }).waitFor();
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 in any form: messages, JSON Lines, an entry of a log; broken JSON and another format are named', async () => {
    const guest = await Guest.visit(demo, 'forms', WIDE);
    await choose(guest, 'Repair');
    const messages = [
      { role: 'user', content: 'Oslo?' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }] },
      { role: 'user', content: 'Hello?' },
    ];
    for (const chat of [
      JSON.stringify(messages),
      messages.map((message) => JSON.stringify(message)).join('\n'),
      JSON.stringify({ level: 'error', body: { messages } }),
    ]) {
      await paste(guest, '{}');
      await paste(guest, chat);
      await result(guest).locator('h3', { hasText: 'Anthropic: 1 error' }).waitFor();
    }
    await paste(guest, '{"messages": [');
    await result(guest).locator('h3', { hasText: 'This is not JSON.' }).waitFor();
    await paste(guest, JSON.stringify([{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]));
    await result(guest)
      .locator('h3', { hasText: /cannot be (repaired|recognized)/ })
      .waitFor();
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 is repaired whatever its items are', async () => {
    const guest = await Guest.visit(demo, 'odd-items', WIDE);
    await choose(guest, 'Repair');
    for (const [dialect, chat] of [
      ['openai-chat', { messages: [null] }],
      ['openai-chat', { messages: [{ role: 'user', content: [null] }] }],
      ['openai-chat', { messages: [{ role: 'assistant', content: null, tool_calls: {} }] }],
      ['openai-chat', { messages: [{ role: 'assistant', content: null, tool_calls: [null] }] }],
      ['openai-chat', { messages: [{ role: 'user', type: { toString: 1 } }] }],
      ['anthropic', { messages: [{ role: 'assistant', content: [{ type: 'tool_use' }] }] }],
      ['gemini', { contents: [{ role: 'user', parts: 'Hello' }] }],
    ]) {
      await paste(guest, '{}');
      await guest.page.locator('#pasted-dialect').selectOption(dialect);
      await paste(guest, JSON.stringify(chat));
      await result(guest)
        .locator('h3', { hasText: /: \d|: nothing wrong|cannot be repaired/ })
        .waitFor();
      assert.doesNotMatch(await result(guest).innerText(), /^This cannot be repaired/, JSON.stringify(chat));
    }
    assert.deepEqual(await guest.leave(), CLEAN);
  });

  test('r52 hostile text that is pasted stays text', async () => {
    const guest = await Guest.visit(demo, 'hostile-paste', WIDE);
    const { page } = guest;
    await choose(guest, 'Repair');
    const call = { id: HOSTILE, type: 'function', function: { name: HOSTILE, arguments: HOSTILE } };
    const chat = {
      [HOSTILE]: HOSTILE,
      messages: [
        { role: 'user', content: HOSTILE },
        { role: 'assistant', content: HOSTILE, tool_calls: [call] },
        { role: HOSTILE, content: HOSTILE },
        { role: 'tool', tool_call_id: `${HOSTILE}2`, content: HOSTILE },
      ],
    };
    for (const [body, answer] of [
      [JSON.stringify(chat), HOSTILE],
      [HOSTILE, ''],
      ['', HOSTILE],
      [`{"messages": ${HOSTILE}`, ''],
      [
        JSON.stringify({
          messages: [
            { role: 'user', content: HOSTILE },
            { role: 'assistant', content: null, tool_calls: [call] },
          ],
        }),
        '',
      ],
    ]) {
      await paste(guest, body, answer);
      await result(guest).locator('h3').waitFor();
    }
    await result(guest).locator('pre.repaired', { hasText: '<img src=x' }).waitFor();
    await page.getByRole('button', { name: 'Open it as a chat' }).click();
    await page.locator('.message', { hasText: HOSTILE }).first().waitFor();
    for (const name of ['Timeline', 'Requests', 'Journal', 'Sizes']) {
      await guest.inspect(name);
      assert.equal(await page.locator('img, iframe, main script, aside script').count(), 0, name);
    }
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});
