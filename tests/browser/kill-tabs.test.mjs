// A run has one owner: who else wants it is told `busy`. And what a kill leaves can be given up, or be cut off again.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { STEPS, rest, tools } from './kill/points.mjs';
import { approach, checkRefused, hangs, roundOf, strike, until } from './kill/scenario.mjs';
import { openWorld } from './kill/world.mjs';

const REPEATS = Number(process.env.RETHREAD_KILL_REPEATS || (process.env.RETHREAD_LONG ? 5 : 2));
const pointOf = (name) => [...tools, ...rest].find((point) => point.name === name);
const RUNS = pointOf('alpha runs');

let world;
let scenes = 0;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

/** A browser on a profile of its own, with a lane and a session. */
async function stage(t, options = {}) {
  scenes += 1;
  const lane = `scene-${scenes}`;
  const given = {
    lane,
    session: `scene ${scenes}`,
    standIn: world.standIn(lane, 0),
    dialect: scenes % 2 ? 'openai-chat' : 'anthropic',
    ...options,
  };
  const scene = { world, browser: await world.launch(await world.newProfile()), given, lane: world.lane(lane) };
  t.after(() => scene.browser.kill());
  return scene;
}

/** SIGKILL at that point, and the next browser. */
async function killedAt(scene, point) {
  const history = await approach({ ...scene, point });
  const { profile } = scene.browser;
  await strike({ ...scene, scenes: [{ ...scene, point }], delay: 0 });
  scene.browser = await world.launch(profile);
  scene.lane.release();
  return history;
}

const pendingIn = (tab, { given }) =>
  tab.evaluate((id) => window.kill.pending(id), given.session).then(({ here }) => here);
const storyIn = (tab, { given }) => tab.evaluate((id) => window.kill.story(id), given.session);
const storedIn = (tab, { given }) => tab.evaluate((id) => window.kill.stored(id), given.session);
const resumeIn = (tab, { given }, options) =>
  tab.evaluate(([given, options]) => window.kill.resume(given, options), [given, options]);
const discardIn = (tab, { given }, id, options) =>
  tab.evaluate(([given, id, options]) => window.kill.discard(given, id, options), [given, id, options]);
const overIn = (tab, { given }) =>
  until('the run to be over', () => tab.evaluate((id) => window.kill.seen(id).over, given.session));
const startsOf = ({ lane }, tool) =>
  lane.tools.filter(({ name, phase }) => name === tool && phase === 'start').map((entry) => entry.arguments.attempt);
const rounds = ({ lane }) => lane.requests.map(roundOf);
const goOn = (scene, turn) => {
  scene.lane.script = STEPS.slice(turn).map((one) => ({ ...one }));
};

test('the live run of another tab is shown as live and is busy', async (t) => {
  const scene = await stage(t);
  const history = await approach({ ...scene, point: RUNS });
  const other = await world.tab(scene.browser);
  const [run, ...more] = await pendingIn(other, scene);
  assert.deepEqual(
    [run.state, run.turn, run.openCalls.map(({ name, state }) => [name, state]), more.length],
    [
      'live',
      1,
      [
        ['alpha', 'started'],
        ['beta', 'not_started'],
      ],
      0,
    ],
  );
  assert.equal(run.id, await scene.browser.page.evaluate((id) => window.kill.seen(id).run, scene.given.session));
  // Its own tab says the same.
  assert.deepEqual(
    (await pendingIn(scene.browser.page, scene)).map(({ state }) => state),
    ['live'],
  );
  for (const tab of [other, scene.browser.page]) {
    assert.deepEqual(await resumeIn(tab, scene, { id: run.id }), { code: tab === other ? 'busy' : 'own' });
    for (const keep of [false, true]) assert.equal(await discardIn(tab, scene, run.id, { keep }), 'busy');
  }
  assert.deepEqual(await storyIn(other, scene), history);
  scene.lane.release();
  const over = await overIn(scene.browser.page, scene);
  assert.equal(over.status, 'finished');
  assert.deepEqual([startsOf(scene, 'alpha'), startsOf(scene, 'beta'), startsOf(scene, 'gamma')], [[1], [1], [1]]);
  for (const tab of [other, scene.browser.page]) {
    assert.deepEqual(await pendingIn(tab, scene), []);
    assert.deepEqual(await resumeIn(tab, scene, { id: run.id }), { code: 'not_found' });
    assert.equal(await discardIn(tab, scene, run.id), 'not_found');
  }
  assert.equal((await storyIn(other, scene)).messages.length, history.messages.length + 4);
  checkRefused(scene.lane);
});

test('of two tabs that resume a run at once, one succeeds and the other is rejected with busy', async (t) => {
  const first = await stage(t);
  for (let i = 0; i < REPEATS; i += 1) {
    // One browser after the other on the same profile, each with a session more.
    const lane = `${first.given.lane}-${i}`;
    const given = { ...first.given, lane, session: `${first.given.session}, ${i}`, standIn: world.standIn(lane, 0) };
    const scene = { ...first, given, lane: world.lane(lane) };
    await killedAt(scene, pointOf('alpha answered, beta not started'));
    first.browser = scene.browser;
    const tabs = [scene.browser.page, await world.tab(scene.browser)];
    const [run] = await pendingIn(tabs[0], scene);
    assert.equal(run.state, 'interrupted');
    goOn(scene, 1);
    scene.lane.hold({ phase: 'start', name: 'beta' });
    const answers = await Promise.all(
      tabs.map((tab) => resumeIn(tab, scene, { id: run.id, answered: 1, watch: true })),
    );
    assert.deepEqual(answers.map(({ code }) => code).sort(), ['busy', 'ok']);
    const at = answers.findIndex(({ code }) => code === 'ok');
    const [winner, loser] = [tabs[at], tabs[1 - at]];
    await until('beta to run', () => hangs(scene.lane, { phase: 'start', name: 'beta' }));
    for (const tab of tabs) {
      assert.deepEqual(
        (await pendingIn(tab, scene)).map(({ state }) => state),
        ['live'],
      );
      assert.deepEqual(await resumeIn(tab, scene, { id: run.id }), { code: tab === winner ? 'own' : 'busy' });
    }
    scene.lane.release();
    assert.equal((await overIn(winner, scene)).status, 'finished');
    assert.deepEqual([startsOf(scene, 'alpha'), startsOf(scene, 'beta'), startsOf(scene, 'gamma')], [[1], [1], [1]]);
    assert.deepEqual(rounds(scene).slice(2), [0, 1, 2], 'no call was made twice');
    assert.deepEqual(await resumeIn(loser, scene, { id: run.id }), { code: 'not_found' });
    assert.deepEqual(await storyIn(loser, scene), await storyIn(winner, scene));
    checkRefused(scene.lane);
  }
});

test('the list of unfinished runs is complete at any moment while runs begin and end in another tab', async (t) => {
  const scene = await stage(t);
  const TURNS = 40;
  const other = await world.tab(scene.browser);
  scene.lane.options.delayMs = 0;
  scene.lane.script = Array.from({ length: TURNS }, () => ({ text: 'Yes.', pieces: 1 }));
  const watched = other.evaluate(([given, turns]) => window.kill.watch(given, turns), [scene.given, TURNS]);
  for (let i = 0; i < TURNS; i += 1) {
    const result = await scene.browser.page.evaluate((given) => window.kill.after(given), scene.given);
    assert.equal(result.status, 'finished');
  }
  const { asked, states } = await watched;
  assert.ok(asked >= TURNS / 4, `asked ${asked} times`);
  assert.deepEqual(
    states.filter((state) => state !== 'live'),
    [],
  );
  checkRefused(scene.lane);
});

for (const [how, end] of [
  [
    'crashed',
    async (tab) => {
      const devtools = await tab.context().newCDPSession(tab);
      const crashed = tab.waitForEvent('crash');
      devtools.send('Page.crash').catch(() => {}); // who crashes does not answer
      await crashed;
    },
  ],
  ['was closed', (tab) => tab.close()],
]) {
  test(`the run of a tab that ${how} is taken over by another`, async (t) => {
    const scene = await stage(t);
    const history = await approach({ ...scene, point: RUNS });
    const other = await world.tab(scene.browser);
    const [{ id }] = await pendingIn(other, scene);
    await end(scene.browser.page);
    scene.lane.release();
    const run = await until('the run to be free', async () =>
      (await pendingIn(other, scene)).find(({ state }) => state === 'interrupted'),
    );
    assert.deepEqual([run.id, run.openCalls.map(({ state }) => state)], [id, ['started', 'not_started']]);
    goOn(scene, 1);
    const { result } = await resumeIn(other, scene, { id, answered: 1 });
    assert.deepEqual([result.status, result.saved], ['finished', true]);
    assert.deepEqual([startsOf(scene, 'alpha'), startsOf(scene, 'beta'), startsOf(scene, 'gamma')], [[1], [1], [1]]);
    const story = await storyIn(other, scene);
    assert.equal(story.messages.length, history.messages.length + 4);
    assert.deepEqual(
      story.invocations.slice(-3).map(({ name, status }) => [name, status]),
      [
        ['alpha', 'interrupted'],
        ['beta', 'ok'],
        ['gamma', 'ok'],
      ],
    );
    checkRefused(scene.lane);
  });
}

for (const [keep, dialect] of [
  [false, 'openai-chat'],
  [true, 'openai-chat'],
  [true, 'anthropic'],
]) {
  test(`an interrupted run is discarded${keep ? ` and kept, ${dialect}` : ''}`, async (t) => {
    const scene = await stage(t, { dialect });
    const history = await killedAt(scene, pointOf('alpha answered, beta runs'));
    const { page } = scene.browser;
    const [run] = await pendingIn(page, scene);
    assert.equal(await discardIn(page, scene, run.id, { keep }), 'ok');
    const story = await storyIn(page, scene);
    assert.deepEqual(await storedIn(page, scene), { ...story, pending: [] });
    assert.deepEqual(story.messages.slice(0, history.messages.length), history.messages);
    const kept = story.messages.slice(history.messages.length).map(({ role, status }) => [role, status]);
    assert.deepEqual(
      kept,
      keep
        ? [
            ['user', 'complete'],
            ['assistant', 'stopped'],
          ]
        : [],
    );
    const calls = story.invocations.slice(history.invocations.length).map(({ name, status }) => [name, status]);
    assert.deepEqual(
      calls,
      keep
        ? [
            ['alpha', 'ok'],
            ['beta', 'aborted'],
          ]
        : [],
    );
    assert.deepEqual(await resumeIn(page, scene, { id: run.id }), { code: 'not_found' });
    assert.equal(await discardIn(page, scene, run.id), 'not_found');
    // The chat goes on, with what was kept in a shape that no provider refuses.
    scene.lane.script = [{ text: 'Now this.' }];
    const result = await page.evaluate((given) => window.kill.after(given), scene.given);
    assert.equal(result.status, 'finished');
    assert.equal(/Lima/.test(scene.lane.requests.at(-1).bodyText), keep);
    checkRefused(scene.lane);
  });
}

for (const onInterrupted of ['report', 'rerun']) {
  test(`a run killed repeatedly while it is resumed is finished in the end (${onInterrupted})`, async (t) => {
    const scene = await stage(t, { onInterrupted });
    const history = await killedAt(scene, RUNS);
    const rerun = onInterrupted === 'rerun';
    // Where the second and the third browser are killed.
    const places = rerun
      ? [
          { phase: 'start', name: 'alpha' },
          { phase: 'end', name: 'alpha' },
        ]
      : [
          { phase: 'start', name: 'beta' },
          { phase: 'point', name: 'before call 2' },
        ];
    for (const place of places) {
      const [run] = await pendingIn(scene.browser.page, scene);
      assert.deepEqual([run.state, run.turn], ['interrupted', 1]);
      goOn(scene, 1);
      scene.lane.hold(place);
      assert.deepEqual(await resumeIn(scene.browser.page, scene, { id: run.id, answered: 1, watch: true }), {
        code: 'ok',
      });
      await until(`${place.phase} ${place.name}`, () => hangs(scene.lane, place));
      const { profile } = scene.browser;
      await scene.browser.kill();
      scene.lane.release();
      scene.browser = await world.launch(profile);
      assert.deepEqual(await storyIn(scene.browser.page, scene), history);
    }
    const [run] = await pendingIn(scene.browser.page, scene);
    goOn(scene, 1);
    const { result } = await resumeIn(scene.browser.page, scene, { id: run.id, answered: 1 });
    assert.equal(result.status, 'finished');
    const story = await storyIn(scene.browser.page, scene);
    const calls = story.invocations.slice(history.invocations.length).map(({ name, status }) => [name, status]);
    if (rerun) {
      assert.deepEqual(startsOf(scene, 'alpha'), [1, 2, 3, 4]);
      assert.deepEqual(calls, [
        ['alpha', 'ok'],
        ['beta', 'ok'],
        ['gamma', 'ok'],
      ]);
    } else {
      assert.deepEqual([startsOf(scene, 'alpha'), startsOf(scene, 'beta')], [[1], [1]]);
      assert.deepEqual(calls, [
        ['alpha', 'interrupted'],
        ['beta', 'interrupted'],
        ['gamma', 'ok'],
      ]);
    }
    assert.deepEqual(
      rounds(scene)
        .slice(2)
        .filter((round) => round === 0).length,
      1,
    );
    assert.equal(story.messages.length, history.messages.length + 4);
    checkRefused(scene.lane);
  });
}
