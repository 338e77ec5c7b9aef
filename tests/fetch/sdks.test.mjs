// Every SDK against the stand-in: what is refused without `repairing()` is taken with it, and what is valid is not
// touched.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { repairing } from '../../js/entry/fetch-node.js';
import { startStandIn } from '../stand-in/server.mjs';
import { local, SDKS } from './sdks.mjs';

const QUESTION = 'Weather in Oslo, please';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let count = 0;
/** A lane of its own for every test. */
function lane() {
  const base = `${standIn.url}/lane/r64-${(count += 1)}`;
  const control = async (path, body) =>
    (await fetch(`${base}/control/${path}`, body && { method: 'POST', body: JSON.stringify(body) })).json();
  return { fetch: local(base), control, requests: () => control('requests') };
}

/** The first answer to the question, which calls two tools. */
async function firstAnswer(sdk, how) {
  const answer = await sdk.ask(lane().fetch, [sdk.question(QUESTION)], how);
  assert.equal(answer.calls.length, 2);
  return answer;
}

/** The HTTP status that a client's error tells. */
const statusOf = (error) => error.status ?? error.statusCode ?? error.lastError?.statusCode;

const until = async (ask) => {
  for (const end = Date.now() + 20_000; ; ) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error('waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

for (const [name, sdk] of Object.entries(SDKS)) {
  describe(`r64: ${name}`, () => {
    for (const stream of [false, true]) {
      const kind = stream ? 'streamed' : 'whole';

      test(`${kind}: a complete tool loop passes unchanged`, async () => {
        const own = lane();
        await own.control('options', { delayMs: 0 });
        const given = [];
        const sent = [];
        const reports = [];
        const inner = repairing({
          fetch: (...args) => {
            sent.push(args);
            return own.fetch(...args);
          },
          onRepair: (info) => reports.push(info),
        });
        const outer = (...args) => {
          given.push(args);
          return inner(...args);
        };
        const history = [sdk.question(QUESTION)];
        const rounds = [];
        let answer;
        do {
          answer = await sdk.ask(outer, history, { stream });
          rounds.push(answer.calls.length);
          history.push(...answer.said, ...(answer.calls.length ? sdk.results(answer.calls) : []));
        } while (answer.calls.length);
        assert.deepEqual(rounds, [2, 1, 0]);
        assert.match(answer.text, /RESULT-get_weather.*RESULT-get_time.*RESULT-book_table/s);
        assert.equal(given.length, 3);
        assert.deepEqual(reports, []);
        for (const [i, args] of given.entries()) {
          assert.equal(sent[i].length, args.length);
          args.forEach((one, k) => assert.equal(sent[i][k], one, 'the very same arguments'));
        }
        for (const { status, dialect, error, bodyText, n } of await own.requests()) {
          assert.deepEqual([status, dialect], [200, sdk.dialect], JSON.stringify(error));
          const body = given[n - 1][1]?.body;
          if (typeof body === 'string') assert.equal(bodyText, body, 'the very same bytes');
        }
      });

      test(`${kind}: a broken history is rejected without repairing() and accepted with it`, async () => {
        const history = sdk.broken(QUESTION, await firstAnswer(sdk, { stream }));
        const plain = lane();
        await assert.rejects(sdk.ask(plain.fetch, history, { stream }), (error) => statusOf(error) === 400);
        assert.deepEqual(
          (await plain.requests()).map((one) => one.status),
          [400],
        );

        const own = lane();
        const reports = [];
        const { text } = await sdk.ask(
          repairing({ fetch: own.fetch, onRepair: (info) => reports.push(info) }),
          history,
          { stream },
        );
        assert.ok(text.length > 0);
        const [{ status, dialect, stream: streamed, headers, bodyText }, ...more] = await own.requests();
        assert.deepEqual([status, dialect, streamed, more.length], [200, sdk.dialect, stream, 0]);
        assert.equal(headers['content-type'].split(';')[0], 'application/json');
        if (headers['content-length']) assert.equal(Number(headers['content-length']), Buffer.byteLength(bodyText));
        assert.equal(reports.length, 1);
        assert.equal(reports[0].dialect, sdk.dialect);
        assert.ok(reports[0].report.some((finding) => finding.severity === 'error'));
      });
    }

    test('an abort ends a repaired request, whose stream arrives as it was sent', async () => {
      const history = sdk.broken(QUESTION, await firstAnswer(sdk, { stream: true }));
      const own = lane();
      await own.control('script', { delayMs: 0, steps: [{ text: 'a b c d', gate: 'g', atPiece: 2 }] });
      const stop = new AbortController();
      const asked = sdk.ask(repairing({ fetch: own.fetch }), history, { stream: true, signal: stop.signal });
      asked.catch(() => {});
      await until(async () => (await own.control('waiting')).length);
      stop.abort();
      await assert.rejects(asked);
      await until(async () => (await own.requests())[0].ended === 'client-closed');
      assert.equal((await own.requests()).length, 1);
    });

    test("the SDK's own retries continue, each with the repaired body", async () => {
      const history = sdk.broken(QUESTION, await firstAnswer(sdk, { stream: false }));
      const own = lane();
      const headers = { 'retry-after-ms': '1', 'retry-after': '0' };
      await own.control('script', { steps: [{ status: 500, headers }, { status: 429, headers }, { text: 'at last' }] });
      let reports = 0;
      const { text } = await sdk.ask(
        repairing({
          fetch: own.fetch,
          onRepair: () => {
            reports += 1;
          },
        }),
        history,
        { stream: false, retries: 3 },
      );
      assert.equal(text, 'at last');
      const requests = await own.requests();
      assert.deepEqual(
        requests.map((one) => one.status),
        [500, 429, 200],
      );
      assert.equal(new Set(requests.map((one) => one.bodyText)).size, 1);
      assert.equal(reports, 3);
    });
  });
}
