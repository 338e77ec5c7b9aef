// examples/react in Chromium, under React's StrictMode: its server, its page, and a page that is killed.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, beforeEach, test } from 'node:test';
import { launchBrowser } from '../../.ci/browser.mjs';
import { endsWithThisProcess } from '../servers/child-processes.mjs';
import { exampleProject, startServices } from '../servers/example-project.mjs';
import { until } from './demo-page.mjs';

let browser;
let project;
let services;
let server;
let url;
before(async () => {
  browser = await launchBrowser();
  project = exampleProject();
  services = await startServices();
  server = endsWithThisProcess(
    spawn(process.execPath, ['react/server.js'], {
      cwd: project.folder,
      env: { PATH: process.env.PATH, ...services.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  url = await new Promise((resolve, reject) => {
    server.stdout.once('data', (text) => resolve(String(text).trim()));
    server.once('exit', (code) => reject(new Error(`the server ended: ${code}`)));
  });
});
after(async () => {
  server?.kill('SIGKILL');
  await services?.stop();
  await browser?.close();
  project?.remove();
});
beforeEach(async () => {
  await control('reset');
  services.calls.weather = 0;
  services.calls.note = 0;
});

const control = (path) => fetch(new URL(`/control/${path}`, services.env.MODEL_URL), { method: 'POST' });
const openGate = (name) => control(`gate/${name}/open`);

/** A person with a profile of their own. */
async function visit() {
  const context = await browser.newContext();
  context.setDefaultTimeout(90_000); // for a machine with few and busy processors
  const complaints = [];
  /** Another tab; it shows the chat with this id, or a new one. */
  const tab = async (chat = '') => {
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(String(error?.stack ?? error)));
    page.on('console', (message) => {
      // What the model refuses is written to the console by the browser itself.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        complaints.push(message.text());
    });
    await page.goto(`${url}/${chat && `#${chat}`}`);
    await page.getByLabel('Question', { exact: true }).waitFor();
    return page;
  };
  const leave = async () => {
    for (const page of context.pages())
      assert.deepEqual(await page.locator('[role=alert] p').allInnerTexts(), [], 'what the page reports');
    await context.close();
    assert.deepEqual(complaints, []);
  };
  return { context, tab, leave, page: await tab() };
}

const chatOf = (page) => new URL(page.url()).hash.slice(1);

async function ask(page, text) {
  await page.getByLabel('Question', { exact: true }).fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

/** Waits until the chat has exactly these texts; `…` at the end of one stands for more. */
async function shows(page, ...wanted) {
  let shown;
  await until(`the texts ${wanted}`, async () => {
    shown = await page.locator('article p:not(.tool)').allInnerTexts();
    return (
      shown.length === wanted.length &&
      wanted.every((text, at) => (text.endsWith('…') ? shown[at].startsWith(text.slice(0, -1)) : shown[at] === text))
    );
  }).catch((error) => {
    throw new Error(`${error.message}; it shows ${JSON.stringify(shown)}`);
  });
}

/** Waits until a journal has a text, which is shown a moment before it is stored. `pattern` is a regular expression. */
const isStored = (page, pattern) =>
  until(`"${pattern}" is stored`, () =>
    page.evaluate(async (wanted) => {
      const settled = (request) =>
        new Promise((resolve, reject) =>
          Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }),
        );
      const database = await settled(indexedDB.open('react-chat'));
      const rows = await settled(database.transaction('runs').objectStore('runs').getAll());
      database.close();
      const arrays = rows.flatMap((row) => (row instanceof Uint8Array ? [row] : Object.values(row)));
      const texts = arrays.filter((one) => one instanceof Uint8Array).map((bytes) => new TextDecoder().decode(bytes));
      return texts.some((text) => new RegExp(wanted).test(text));
    }, pattern),
  );

/** Waits until no run is under way. */
const isIdle = (page) => until('no run', async () => !(await page.getByRole('status').innerText()));

const article = (page, at) => page.locator('article').nth(at);
const button = (place, name) => place.getByRole('button', { name, exact: true });
const titles = (page) => page.locator('nav li a').allInnerTexts();
const listed = (page, title) => page.locator('nav li', { has: page.getByText(title, { exact: true }) });
const weather = (city) => ({ calls: [{ name: 'get_weather', arguments: { city } }] });
const note = (text) => ({ calls: [{ name: 'post_note', arguments: { note: text } }] });

async function crash(page) {
  const devtools = await page.context().newCDPSession(page);
  const crashed = page.waitForEvent('crash');
  devtools.send('Page.crash').catch(() => {}); // the page does not live to answer
  await crashed;
  await page.close();
}

/** The number of objects of these classes that garbage collection leaves in the page. */
async function objectsOf(page, ...classes) {
  const devtools = await page.context().newCDPSession(page);
  const chunks = [];
  devtools.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk));
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.takeHeapSnapshot');
  await devtools.detach();
  const { snapshot, nodes, strings } = JSON.parse(chunks.join(''));
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name] = [fields.indexOf('type'), fields.indexOf('name')];
  const counts = Object.fromEntries(classes.map((one) => [one, 0]));
  for (let at = 0; at < nodes.length; at += fields.length) {
    const found = strings[nodes[at + name]];
    if (types[0][nodes[at + type]] === 'object' && Object.hasOwn(counts, found)) counts[found] += 1;
  }
  return counts;
}

test('r60 a React page that is killed continues its run once under StrictMode, and questions wait for each other', async () => {
  const { page, tab, leave } = await visit();
  await services.script([
    weather('Oslo'),
    { text: 'It is mild in Oslo.', gate: 'killed', atPiece: 2 },
    { text: 'It is mild in Oslo.', gate: 'resumed', atPiece: 2 },
    { text: 'In Bergen, too.' },
    { text: 'And in Rome.' },
    { text: 'You are welcome.' },
  ]);
  await ask(page, 'How is Oslo?');
  await shows(page, 'How is Oslo?', 'It is…');
  await ask(page, 'And Bergen?');
  await page.getByText('And Bergen? (waits)').waitFor();
  // It is stored while it waits.
  await isStored(page, 'And Bergen');
  const chat = chatOf(page);
  await crash(page);

  const again = await tab(chat);
  await shows(again, 'How is Oslo?', 'It is…');
  // What the journal has of the answer is shown before the run goes on.
  await until('the answer is asked for', async () => (await services.requests()).length >= 3);
  assert.equal((await services.requests()).length, 3, 'the answer that was cut is asked for once more, not twice');
  await again.getByText('And Bergen? (waits)').waitFor();
  await ask(again, 'And Rome?');
  await again.getByText('And Rome? (waits)').waitFor();
  await ask(again, 'Thanks.');
  await again.getByText('Thanks. (waits)').waitFor();
  await openGate('resumed');
  const answered = ['How is Oslo?', 'It is mild in Oslo.', 'And Bergen?', 'In Bergen, too.', 'And Rome?'];
  await shows(again, ...answered, 'And in Rome.', 'Thanks.', 'You are welcome.');
  assert.equal(services.calls.weather, 1, 'a tool that has returned does not run again');
  assert.match(await again.locator('.tool').innerText(), /<img src=x onerror=/);
  assert.equal(await again.evaluate(() => window.owned), undefined, 'what a tool returns is text');
  const requests = await services.requests();
  assert.deepEqual(
    requests.map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  );
  const { messages } = requests.at(-1).body;
  assert.deepEqual(
    messages.filter(({ role }) => role === 'user').map(({ content }) => content),
    ['How is Oslo?', 'And Bergen?', 'And Rome?', 'Thanks.'],
  );
  await leave();
});

test('r29 a React page approves and rejects calls, after a reload too, and each tool runs once', async () => {
  const { page, leave } = await visit();
  await services.script([note('one'), { text: 'Posted.' }, note('two'), { text: 'Not posted.' }, note('three')]);
  await ask(page, 'Post one.');
  await button(page, 'Approve').waitFor();
  assert.equal(services.calls.note, 0);
  await isStored(page, String.raw`note\W+one\W`);
  await page.reload();
  await button(page, 'Approve').click();
  await shows(page, 'Post one.', 'Posted.');
  assert.equal(services.calls.note, 1);

  await ask(page, 'Post two.');
  await button(page, 'Reject').click();
  await shows(page, 'Post one.', 'Posted.', 'Post two.', 'Not posted.');
  assert.equal(services.calls.note, 1);

  // Without a reload the run that waits is driven already.
  await ask(page, 'Post three.');
  await button(page, 'Approve').click();
  await until('the third note', () => services.calls.note === 2);
  await leave();
});

test('r57 a React page edits and regenerates, and its arrows show each sibling', async () => {
  const { page, leave } = await visit();
  await services.script(['One.', 'Another one.', 'Edited.', 'Further.'].map((text) => ({ text })));
  await ask(page, 'First?');
  await shows(page, 'First?', 'One.');
  await button(article(page, 1), 'Regenerate').click();
  await shows(page, 'First?', 'Another one.');
  await article(page, 1).getByText('2 / 2').waitFor();
  await button(article(page, 0), 'Edit').click();
  await page.getByLabel('Edited question').fill('First, in other words?');
  await button(article(page, 0), 'Ask').click();
  await shows(page, 'First, in other words?', 'Edited.');
  await article(page, 0).getByText('2 / 2').waitFor();

  await button(article(page, 0), 'Previous').click();
  await shows(page, 'First?', 'One.');
  await button(article(page, 1), 'Next').click();
  await shows(page, 'First?', 'Another one.');
  await page.reload();
  await shows(page, 'First?', 'Another one.');
  await ask(page, 'And then?');
  await shows(page, 'First?', 'Another one.', 'And then?', 'Further.');
  const { body } = (await services.requests()).at(-1);
  assert.deepEqual(
    body.messages.map(({ content }) => content),
    ['First?', 'Another one.', 'And then?'],
  );
  await leave();
});

test('r60 two tabs of a React page show one chat, and the question of one waits for the run of the other', async () => {
  const { page, tab, leave } = await visit();
  await services.script([
    { text: 'One two three.', gate: 'first', atPiece: 2 },
    { text: 'Four.' },
    { text: 'Edited.' },
  ]);
  await ask(page, 'Count.');
  await shows(page, 'Count.', 'One two…');
  const other = await tab(chatOf(page));
  await shows(other, 'Count.', 'One two…');
  assert.equal(await button(other, 'Stop').count(), 0, 'the run is that of the first tab');
  await ask(other, 'Go on.');
  await other.getByText('Go on. (waits)').waitFor();
  await openGate('first');
  for (const shown of [page, other]) await shows(shown, 'Count.', 'One two three.', 'Go on.', 'Four.');

  await button(article(other, 2), 'Edit').click();
  await other.getByLabel('Edited question').fill('Stop there.');
  await button(article(other, 2), 'Ask').click();
  await shows(other, 'Count.', 'One two three.', 'Stop there.', 'Edited.');
  await article(page, 2).getByText('1 / 2').waitFor();
  await shows(page, 'Count.', 'One two three.', 'Go on.', 'Four.');
  assert.equal((await services.requests()).length, 3);
  await leave();
});

test('r57 a React page lists chats by recency, archives and deletes them, and deletes messages', async () => {
  const { page, leave } = await visit();
  await services.script(['One.', 'Two.', 'Three.'].map((text) => ({ text })));
  await ask(page, 'First chat');
  await shows(page, 'First chat', 'One.');
  await button(page, 'New chat').click();
  await shows(page);
  await ask(page, 'Second chat');
  await shows(page, 'Second chat', 'Two.');
  await until('the second chat at the front', async () => (await titles(page)).join() === 'Second chat,First chat');
  await page.getByText('First chat', { exact: true }).click();
  await shows(page, 'First chat', 'One.');
  await ask(page, 'Again?');
  await shows(page, 'First chat', 'One.', 'Again?', 'Three.');
  await until('the first chat at the front', async () => (await titles(page)).join() === 'First chat,Second chat');

  await isIdle(page);
  await button(article(page, 1), 'Delete').click();
  await shows(page, 'First chat', 'Again?', 'Three.');
  await button(listed(page, 'Second chat'), 'Archive').click();
  await until('one chat', async () => (await titles(page)).join() === 'First chat');
  await page.getByLabel('Archived').check();
  await until('the archived chat', async () => (await titles(page)).join() === 'Second chat');
  await button(listed(page, 'Second chat'), 'Delete').click();
  await until('no archived chat', async () => (await titles(page)).length === 0);
  await page.getByLabel('Archived').uncheck();
  await button(listed(page, 'First chat'), 'Delete').click();
  await until('no chat', async () => (await titles(page)).length === 0);
  await shows(page);
  await leave();
});

test('r57 a React page shows what fails, stops, and goes on', async () => {
  const { page, leave } = await visit();
  await services.script([
    { status: 400, message: 'The model is on holiday.' },
    { text: 'Back again.' },
    { text: 'This is long.', gate: 'stopped', atPiece: 2 },
    { text: 'Fresh.' },
  ]);
  await ask(page, 'Anybody there?');
  await page.getByText('The model is on holiday.').waitFor();
  await button(page, 'Continue').click();
  await shows(page, 'Anybody there?', 'Back again.');

  await ask(page, 'Tell me more.');
  await shows(page, 'Anybody there?', 'Back again.', 'Tell me more.', 'This is…');
  await button(article(page, 0), 'Delete').click();
  await page.getByRole('alert').getByText('busy').waitFor();
  await button(page, 'Dismiss').click();
  await button(page, 'Stop').click();
  await article(page, 3).getByText('(stopped)').waitFor();
  await ask(page, 'Once more.');
  await shows(page, 'Anybody there?', 'Back again.', 'Once more.', 'Fresh.');
  await leave();
});

test('r57 a React page that switches between chats keeps none of them in memory', async () => {
  const { page, leave } = await visit();
  await services.script(['One.', 'Two.'].map((text) => ({ text })));
  await ask(page, 'First chat');
  await shows(page, 'First chat', 'One.');
  await button(page, 'New chat').click();
  await ask(page, 'Second chat');
  await shows(page, 'Second chat', 'Two.');
  for (let times = 0; times < 20; times += 1) {
    await page.getByText('First chat', { exact: true }).first().click();
    await shows(page, 'First chat', 'One.');
    await page.getByText('Second chat', { exact: true }).first().click();
    await shows(page, 'Second chat', 'Two.');
  }
  // The one that is shown; React may keep what it rendered before.
  const { Session, SessionView } = await objectsOf(page, 'Session', 'SessionView');
  assert.ok(Session >= 1 && Session <= 3, `${Session} sessions`);
  assert.ok(SessionView >= 1 && SessionView <= 3, `${SessionView} views`);
  await leave();
});

test('r57 a React page keeps a question when another chat is shown at once, and shows that it waits', async () => {
  const { page, leave } = await visit();
  await services.script([{ text: 'This is long.', gate: 'left', atPiece: 2 }, { text: 'The second.' }]);
  const first = chatOf(page);
  // In one task: nothing of the question is stored yet.
  await page.getByLabel('Question', { exact: true }).fill('First chat');
  await page.evaluate(() => {
    for (const name of ['Send', 'New chat'])
      [...document.querySelectorAll('button')].find(({ textContent }) => textContent === name).click();
  });
  await until('another chat', async () => chatOf(page) !== first);
  await page.locator('nav li a', { hasText: 'First chat' }).click();
  await shows(page, 'First chat', 'This is…');
  await ask(page, 'And then?');
  await page.getByText('And then? (waits)').waitFor();
  await button(page, 'New chat').click();
  await shows(page);
  assert.equal(await page.getByText('And then? (waits)').count(), 0, 'it is a question of the other chat');
  await page.locator('nav li a', { hasText: 'First chat' }).click();
  await page.getByText('And then? (waits)').waitFor();
  await openGate('left');
  await shows(page, 'First chat', 'This is long.', 'And then?', 'The second.');
  await leave();
});

test('r57 a React page gives a question back that could not be asked', async () => {
  const { page, leave } = await visit();
  await services.script([{ text: 'Now it works.' }]);
  await page.evaluate(() => {
    const { transaction } = IDBDatabase.prototype;
    window.mend = () => {
      IDBDatabase.prototype.transaction = transaction;
    };
    IDBDatabase.prototype.transaction = () => {
      throw new DOMException('The disk is full.', 'QuotaExceededError');
    };
  });
  const field = page.getByLabel('Question', { exact: true });
  await ask(page, 'Is there room?');
  await until('the question is in its field', async () => (await field.inputValue()) === 'Is there room?');
  // Of the run, and of the title.
  const alerts = page.getByRole('alert').getByText('The disk is full.');
  await until('both are reported', async () => (await alerts.count()) === 2);
  await page.evaluate(() => window.mend());
  while (await button(page, 'Dismiss').count()) await button(page, 'Dismiss').first().click();
  await button(page, 'Send').click();
  await shows(page, 'Is there room?', 'Now it works.');
  await leave();
});

test('r57 a React page without Symbol.dispose releases a chat that is left, and a webhook may answer 204', async () => {
  const { context, tab, leave } = await visit();
  await context.addInitScript(() => {
    const { dispose, ...known } = Object.getOwnPropertyDescriptors(Symbol);
    const native = Symbol;
    window.Symbol = Object.defineProperties((name) => native(name), known);
  });
  const page = await tab();
  assert.equal(await page.evaluate(() => Symbol.dispose), undefined);
  services.webhook.status = 204;
  await services.script([note('Hello.'), { text: 'It is posted.' }]);
  await ask(page, 'Post it.');
  await button(page, 'Approve').click();
  await shows(page, 'Post it.', 'It is posted.');
  services.webhook.status = 200;
  assert.match(await page.locator('.tool').innerText(), /→ ""/);
  await button(page, 'New chat').click();
  await shows(page);
  await leave();
});
