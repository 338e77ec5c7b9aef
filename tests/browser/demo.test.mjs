// The demo page, as a stranger uses it: asked, reloaded, cut off, stopped, in two tabs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startStandIn } from '../stand-in/server.mjs';
import { CLEAN, Guest, startDemo, until } from './demo-page.mjs';

const QUESTION = 'How is the weather in Oslo, and what time is it there?';
const ONCE = { get_weather: 1, get_time: 1, get_forecast: 1 };

let demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.close());

const reloading = /net::ERR|Failed to load resource/;

// Side by side: most of their time is waiting for the model and the tools.
describe('r52 the demo', { concurrency: 4 }, () => {
  describe('a question', () => {
    test('is answered by two parallel calls, another round, then streamed text, and is shown again after a reload', async () => {
      const guest = await Guest.visit(demo, 'ask');
      const { page } = guest;
      await guest.hold('get_weather');
      await guest.hold('get_time');
      await guest.write(QUESTION);
      await guest.card('get_weather', 'running').waitFor();
      await guest.card('get_time', 'running').waitFor();
      assert.equal(await page.locator('.calls').count(), 1, 'both calls are one round');
      assert.equal(await page.locator('#stop').isVisible(), true);

      // The answer stops half-way, so that it can be seen to grow, and which nodes are replaced.
      await guest.control('script', { steps: [{ brain: true }, { brain: true, gate: 'rest', atPiece: 9 }] });
      await page.evaluate(() => {
        window.first = document.querySelector('.message.user');
      });
      await guest.control('release', {});
      const growing = page.locator('.message.growing');
      await growing.filter({ hasText: 'You asked: "How' }).waitFor();
      assert.doesNotMatch(await growing.innerText(), /this is what came back/);
      await guest.control('gate/rest/open', {});
      await guest.answered();
      const kept = await page.evaluate(() => window.first === document.querySelector('.message.user'));
      assert.ok(kept, 'an unchanged message keeps its node');

      assert.equal(await page.locator('.calls').count(), 2, 'two rounds');
      assert.deepEqual(await page.locator('.round-label').allInnerTexts(), [
        'Round 1 · 2 calls at once',
        'Round 2 · one call',
      ]);
      assert.equal(await page.locator('.call[data-status="ok"]').count(), 3);
      assert.match(await guest.words(), /I called 3 tools in 2 rounds/);
      assert.deepEqual(await guest.runs(), ONCE);
      assert.equal((await guest.control('requests')).length, 3);

      await guest.card('get_weather').locator('summary').click();
      assert.match(await guest.card('get_weather').locator('.call-result').innerText(), /Oslo: -?\d+ °C/);
      await guest.card('get_weather').locator('summary').click();

      const words = await guest.words();
      await guest.reload();
      assert.equal(await guest.words(), words);
      assert.equal(await page.locator('#sessions [aria-current] .session-title').innerText(), QUESTION);
      assert.equal(await page.locator('.notice').count(), 0);
      assert.deepEqual(await guest.runs(), ONCE, 'a reload runs no tool');
      assert.deepEqual(await guest.leave(), CLEAN);
    });

    test('is answered in each of the five wire formats, streamed or whole, in one conversation', async () => {
      const guest = await Guest.visit(demo, 'formats');
      const formats = {
        'openai-chat': 'OpenAI chat',
        'openai-responses': 'OpenAI Responses',
        anthropic: 'Anthropic',
        gemini: 'Gemini',
        mistral: 'Mistral',
      };
      const offered = await guest.page
        .locator('#settings [name=dialect]')
        .evaluateAll((radios) => radios.map(({ value }) => value));
      assert.deepEqual(offered, Object.keys(formats));
      const expected = [];
      const turns = [
        ['openai-chat', true],
        ['openai-responses', false],
        ['anthropic', true],
        ['gemini', true],
        ['gemini', false],
        ['mistral', false],
      ];
      for (const [dialect, stream] of turns) {
        await guest.settings({ dialect, stream, model: 'gemini-3-stand-in' });
        await guest.ask(stream ? QUESTION : 'And in Rome?');
        expected.push(...Array(3).fill(`${dialect} ${stream} 200`));
        assert.equal(await guest.page.locator('#model-name').innerText(), `gemini-3-stand-in · ${formats[dialect]}`);
      }
      const requests = await guest.control('requests');
      assert.deepEqual(
        requests.map(({ dialect, stream, status }) => `${dialect} ${stream} ${status}`),
        expected,
      );
      assert.equal(requests[0].body.model, 'gemini-3-stand-in');
      assert.deepEqual(await guest.runs(), { get_weather: 6, get_time: 6, get_forecast: 6 });
      assert.equal((await guest.words()).match(/I called 3 tools in 2 rounds/g).length, 6);
      await guest.reload();
      assert.equal(
        await guest.page.locator('#model-name').innerText(),
        'gemini-3-stand-in · Mistral',
        'the choice outlives a reload',
      );
      assert.deepEqual(await guest.leave(), CLEAN);
    });

    test('shows a failing tool and hostile tool output as text', async () => {
      const guest = await Guest.visit(demo, 'hostile');
      const { page } = guest;
      await page.getByRole('button', { name: 'hostile web page' }).click();
      await guest.answered();
      const card = guest.card('read_page', 'ok');
      await card.locator('summary').click();
      assert.match(await card.locator('.call-result').innerText(), /<img src=x onerror="window.owned = true"><script>/);
      assert.match(await guest.words(), /read_page answered <h1>Rome<\/h1><img src=x/);
      const made = await page.evaluate(() => ({
        owned: window.owned ?? null,
        made: document.querySelectorAll('#conversation :is(img, script, a, h1, iframe)').length,
      }));
      assert.deepEqual(made, { owned: null, made: 0 });

      const markup = '</code><img src=x onerror=window.owned=true>';
      await guest.control('script', {
        steps: [
          {
            text: markup,
            calls: [
              { name: 'get_time', arguments: { city: markup } },
              { name: 'no_such_tool', arguments: '{"not json' },
            ],
          },
          { text: `${markup} <b>done</b>` },
        ],
      });
      await guest.ask(markup);
      assert.match(
        await guest.card('get_time', 'error').locator('.call-result').textContent(),
        /no time zone is known for "<\/code><img/,
      );
      await guest.reload();
      assert.match(await guest.words(), /<b>done<\/b>/);
      const again = await page.evaluate(() => ({
        owned: window.owned ?? null,
        made: document.querySelectorAll('img, iframe, main b, aside img').length,
      }));
      assert.deepEqual(again, { owned: null, made: 0 });
      assert.deepEqual(await guest.leave(), CLEAN);
    });
  });

  describe('an interrupted run', () => {
    test('after a reload is offered and resumed: a finished tool is not run again, an interrupted one is reported', async () => {
      const guest = await Guest.visit(demo, 'reload');
      const { page } = guest;
      await guest.hold('get_time');
      await guest.write(QUESTION);
      await guest.card('get_weather', 'ok').waitFor();
      await until('get_time hangs', async () =>
        (await guest.control('waiting')).some(({ name }) => name === 'get_time'),
      );
      await guest.resultIsStored('get_weather');
      await guest.reload();

      const bar = guest.notice('This run was interrupted');
      await bar.waitFor();
      assert.match(await bar.innerText(), /1 of 2 calls had finished and will not run again\. One was interrupted/);
      assert.match(await guest.words(), /How is the weather in Oslo/, 'the question is shown');
      assert.equal(await guest.card('get_weather', 'ok').count(), 1, 'and what its tools found');
      assert.equal(await guest.card('get_time', 'interrupted').count(), 1);
      await guest.hasBadge('interrupted');
      assert.equal(await page.locator('.message[data-saved=true]').count(), 0, 'the history was not touched');

      await guest.control('release', {});
      await bar.getByRole('button', { name: 'Resume' }).click();
      await guest.answered();
      assert.match(await guest.words(), /I called 3 tools in 2 rounds/);
      assert.equal(await guest.card('get_time', 'interrupted').count(), 1);
      assert.equal(await guest.card('get_weather', 'ok').count(), 1);
      assert.deepEqual(await guest.runs(), ONCE);
      await guest.noNotice();
      await until('no badge', async () => (await page.locator('#sessions .badge:visible').count()) === 0);
      assert.deepEqual(await guest.leave({ complaints: reloading }), CLEAN);
    });

    test('during the text is requested again, and can be discarded', async () => {
      const guest = await Guest.visit(demo, 'text');
      const { page } = guest;
      await guest.control('script', { steps: [{ text: 'one two three four five six', gate: 'rest', atPiece: 3 }] });
      await guest.write('Count.');
      await page.locator('.message.assistant', { hasText: 'two' }).waitFor();
      await guest.reload();
      await guest.notice('This run was interrupted').getByRole('button', { name: 'Resume' }).click();
      await guest.answered();
      assert.match(await guest.words(), /Count\.[^]*I called 3 tools/);

      await guest.control('script', { steps: [{ text: 'never whole', gate: 'shut', atPiece: 1 }] });
      await guest.write('Again.');
      await page.locator('.message', { hasText: 'Again.' }).waitFor();
      await until('the request is out', async () =>
        (await guest.control('waiting')).some(({ name }) => name === 'shut'),
      );
      await guest.reload();
      await guest.notice('This run was interrupted').getByRole('button', { name: 'Discard' }).click();
      await guest.notice('was interrupted').waitFor({ state: 'detached' });
      assert.doesNotMatch(await page.locator('main').innerText(), /Again\./);
      assert.deepEqual(await guest.leave({ complaints: reloading }), CLEAN);
    });

    test('stopped by the user leaves history unchanged and the question on the screen; it can be asked again, and the next question works', async () => {
      const guest = await Guest.visit(demo, 'stop');
      const { page } = guest;
      await guest.hold('get_weather');
      await guest.write(QUESTION);
      await guest.card('get_weather', 'running').waitFor();
      await page.locator('#stop').click();
      await guest.notice('Stopped.').waitFor();
      await guest.answered(); // what is shown is stored
      assert.equal(await page.locator('.message[data-saved=true]').count(), 0);
      for (const reloaded of [false, true]) {
        if (reloaded) await guest.reload();
        assert.match(await guest.words(), /How is the weather in Oslo/, 'the question stays');
        assert.equal(await guest.card('get_weather', 'aborted').count(), 1);
        assert.equal(await page.locator('#sessions .badge:visible').count(), 0, 'nothing waits');
      }
      await guest.control('release', {});
      await guest.notice('Stopped.').getByRole('button', { name: 'Ask again' }).click();
      await guest.answered();
      assert.match(await guest.words(), /I called 3 tools/);
      // In the middle of a text as well.
      await guest.control('script', { steps: [{ text: 'one two three four five six', gate: 'rest', atPiece: 3 }] });
      await guest.write('Count.');
      await page.locator('.message.growing', { hasText: 'two' }).waitFor();
      await page.locator('#stop').click();
      await guest.notice('Stopped.').waitFor();
      assert.match(await guest.words(), /Count\.\s+one two/, 'and so does what came of the answer');
      await guest.ask('And in Rome?');
      assert.match(await guest.words(), /You asked: "And in Rome\?"/);
      assert.doesNotMatch(await guest.words(), /Count\./);
      assert.deepEqual(await guest.leave({ complaints: reloading }), CLEAN);
    });

    test('of a failing model shows the reason, survives a reload, and is retried', async () => {
      const guest = await Guest.visit(demo, 'fail');
      const { page } = guest;
      await guest.control('script', {
        steps: [{ brain: true }, ...Array(3).fill({ status: 500, message: 'the model has a cold' })],
      });
      // It is there for a moment only.
      await page.evaluate(() => {
        const notices = document.querySelector('#notices');
        window.said = '';
        const note = () => {
          window.said += notices.innerText;
        };
        new MutationObserver(note).observe(notices, { childList: true });
      });
      await guest.write(QUESTION);
      const bar = guest.notice('This run failed');
      await bar.waitFor();
      assert.match(await page.evaluate(() => window.said), /Trying again/);
      assert.match(await bar.innerText(), /500.*the model has a cold/);
      await guest.answered(); // what is shown is stored
      await guest.reload();
      assert.match(await bar.innerText(), /the model has a cold/);
      await guest.hasBadge('failed');
      await bar.getByRole('button', { name: 'Retry' }).click();
      await guest.answered();
      assert.match(await guest.words(), /I called 3 tools in 2 rounds/);
      await guest.noNotice();
      assert.deepEqual(await guest.runs(), ONCE, 'what the first round found was kept');
      assert.deepEqual(await guest.leave({ refusals: [500], complaints: /500/ }), CLEAN);
    });
  });

  describe('two tabs', () => {
    test('see the live run of each other, its messages, and its end', async () => {
      const guest = await Guest.visit(demo, 'tabs');
      const { page } = guest;
      await guest.ask(QUESTION);
      const session = new URL(page.url()).searchParams.get('session');
      const other = await guest.tab(`&session=${session}`);
      assert.equal(await guest.words(other), await guest.words());

      await guest.hold('get_time');
      await guest.write('And in Rome?');
      await guest.notice('Running in another tab', other).waitFor();
      assert.equal(await other.locator('.notice button').count(), 0, 'a run that lives is not offered');
      await other.locator('#conversation .message', { hasText: 'And in Rome?' }).waitFor();
      await guest.card('get_time', 'running', other).waitFor();
      await guest.control('release', {});
      await guest.answered();
      await until('the answer is here', async () => (await guest.words(other)).includes('You asked: "And in Rome?"'));
      await guest.notice('Running in another tab', other).waitFor({ state: 'detached' });
      await guest.ask('And in Lisbon?', other);
      await until('the answer is there', async () => (await guest.words()).includes('You asked: "And in Lisbon?"'));
      // It is seen there as it grows, so what the store adds to it comes later.
      await until('both show the same', async () => (await guest.words()) === (await guest.words(other)));

      // The tab with the run is closed: the other one may go on with it.
      await guest.hold('get_forecast');
      await guest.write('And in Cairo?');
      await guest.card('get_forecast', 'running').waitFor();
      await guest.notice('Running in another tab', other).waitFor();
      await page.close();
      const bar = guest.notice('This run was interrupted', other);
      await bar.waitFor();
      await guest.control('release', {});
      await bar.getByRole('button', { name: 'Resume' }).click();
      await guest.answered(other);
      assert.match(await guest.words(other), /You asked: "And in Cairo\?"/);
      assert.deepEqual(await guest.runs(), { get_weather: 4, get_time: 4, get_forecast: 4 });
      assert.deepEqual(await guest.leave({ complaints: reloading }), CLEAN);
    });
  });

  describe('chats', () => {
    test('are listed, opened while another one runs, and deleted in every tab', async () => {
      const guest = await Guest.visit(demo, 'list');
      const { page } = guest;
      const titles = () => page.locator('#sessions .session-title').allInnerTexts();
      await guest.ask('Is it warm in Rome?');
      await page.getByRole('button', { name: 'New chat' }).click();
      await page.locator('#welcome').waitFor();
      await guest.hold('get_weather');
      await guest.write('Is it warm in Oslo?');
      await guest.card('get_weather', 'running').waitFor();
      await until(
        'both are listed, the newest first',
        async () => (await titles()).join() === 'Is it warm in Oslo?,Is it warm in Rome?',
      );

      await page.locator('#sessions .session', { hasText: 'Rome' }).click();
      await page.locator('.message', { hasText: 'You asked: "Is it warm in Rome?"' }).waitFor();
      assert.equal(await page.locator('#send').isVisible(), true, 'this one is free');
      await guest.hasBadge('running', page.locator('#sessions li', { hasText: 'Oslo' }));
      await guest.control('release', {});
      await page.locator('#sessions .session', { hasText: 'Oslo' }).click();
      await page.locator('.message', { hasText: 'You asked: "Is it warm in Oslo?"' }).waitFor();
      await guest.answered();

      const other = await guest.tab(`&session=${new URL(page.url()).searchParams.get('session')}`);
      const remove = async (title, answer) => {
        await page.getByRole('button', { name: `Delete "${title}"` }).click();
        await page.locator('#confirm').getByRole('button', { name: answer }).click();
      };
      await remove('Is it warm in Oslo?', 'Keep it');
      assert.equal((await titles()).length, 2);
      await remove('Is it warm in Oslo?', 'Delete');
      await until('one is left', async () => (await titles()).join() === 'Is it warm in Rome?');
      await page.locator('#welcome').waitFor();
      await other.locator('#welcome').waitFor();
      assert.doesNotMatch((await guest.stored()).text, /warm in Oslo/);

      // One whose run is under way is stopped first.
      await guest.hold('get_time');
      await guest.write('Is it warm in Cairo?');
      await guest.card('get_time', 'running').waitFor();
      await remove('Is it warm in Cairo?', 'Delete');
      await until('it is gone', async () => (await titles()).join() === 'Is it warm in Rome?');
      await page.locator('#welcome').waitFor();
      assert.deepEqual(await guest.leave(), CLEAN);
    });
  });

  describe('a real endpoint', () => {
    const KEY = 'sk-secret-0123456789-abcdef';

    test('accepts a key, which is sent in a header and is in no body and no storage', async () => {
      const far = await startStandIn();
      const guest = await Guest.visit(demo, 'key');
      const { page } = guest;
      try {
        const requests = async () => (await fetch(`${far.url}/control/requests`)).json();
        await guest.settings({ endpoint: `${far.url}/v1/chat/completions`, model: 'real-one', key: KEY });
        await guest.ask(QUESTION);
        assert.match(await guest.words(), /I called 3 tools/);
        await guest.settings({
          dialect: 'anthropic',
          endpoint: `${far.url}/v1/messages`,
          model: 'other-one',
          key: `${KEY}-2`,
        });
        await guest.ask('And in Rome?');
        const sent = await requests();
        assert.deepEqual(
          sent.map(({ status }) => status),
          Array(6).fill(200),
        );
        assert.deepEqual([sent[0].headers.authorization, sent[3].headers['x-api-key']], ['present', 'present']);
        assert.equal(sent[3].headers.authorization ?? 'absent', 'absent', 'a key goes to its own provider only');
        assert.ok(sent.every(({ bodyText }) => !bodyText.includes(KEY)));
        assert.deepEqual(await guest.control('tools'), [], 'nobody is told of tool runs');

        // One more that is cut off: its journal holds no key either.
        await fetch(`${far.url}/control/hold`, { method: 'POST', body: JSON.stringify({ phase: 'model' }) });
        await guest.write('And in Cairo?');
        await until('the request hangs', async () => (await requests()).length === 7);
        const { records, text } = await guest.stored();
        assert.ok(
          records > 3 && text.includes('And in Rome?') && text.includes('real-one'),
          'the dump sees what is stored',
        );
        assert.ok(!text.includes(KEY), 'the key is stored');
        assert.ok(!(await page.content()).includes(KEY), 'the key is in the page');

        // Gone after a reload, while the rest of the settings is kept.
        await guest.reload();
        await page.locator('#settings-open').click();
        assert.equal(await page.locator('[name=key]').inputValue(), '');
        assert.equal(await page.locator('[name=model]').inputValue(), 'other-one');
        assert.equal(await page.locator('[name=endpoint]').inputValue(), `${far.url}/v1/messages`);
        assert.deepEqual(await guest.leave({ complaints: reloading }), CLEAN);
      } finally {
        await far.close();
      }
    });

    test('that cannot be reached, or is not a valid address, shows an error', async () => {
      const guest = await Guest.visit(demo, 'nowhere');
      const { page } = guest;
      await guest.settings({ endpoint: 'http://localhost:9/v1/chat/completions' });
      await guest.write(QUESTION);
      await guest.notice('This run failed').waitFor();
      assert.match(await guest.notice('This run failed').innerText(), /could not be reached/);
      await guest.settings({ endpoint: '' });
      await guest.notice('This run failed').getByRole('button', { name: 'Retry' }).click();
      await guest.answered();
      assert.match(await guest.words(), /I called 3 tools/);
      await guest.settings({ endpoint: `http://host.example/v1?api_key=${KEY}` });
      await guest.write('And in Rome?');
      await guest.notice('Dismiss').waitFor();
      const field = page.locator('#question');
      await until('the question is in its field', async () => (await field.inputValue()) === 'And in Rome?');
      assert.doesNotMatch(await guest.notice('Dismiss').innerText(), new RegExp(KEY));
      assert.ok(!(await guest.stored()).text.includes(KEY), 'a key in the address is not kept either');
      assert.deepEqual(await guest.leave({ complaints: /ERR_|Failed to load/ }), CLEAN);
    });
  });

  test('a phone: nothing is wider than the screen, every control has a name, the drawer opens', async () => {
    const guest = await Guest.visit(demo, 'phone', {
      viewport: { width: 390, height: 780 },
      hasTouch: true,
      colorScheme: 'dark',
    });
    const { page } = guest;
    await guest.ask(QUESTION);
    for (const card of await page.locator('.call summary').all()) await card.click();
    const { wide, nameless } = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth - innerWidth,
      nameless: [...document.querySelectorAll('button, input, textarea')]
        .filter((one) => !one.ariaLabel && !one.labels?.length && !one.textContent.trim() && one.offsetParent)
        .map((one) => one.outerHTML),
    }));
    assert.ok(wide <= 0, `${wide} px too wide`);
    assert.deepEqual(nameless, []);
    await page.getByRole('button', { name: 'Show the list of chats' }).click();
    await page.locator('#sessions .session').click();
    await page.locator('#side').waitFor({ state: 'hidden' });
    assert.deepEqual(await guest.leave(), CLEAN);
  });
});
