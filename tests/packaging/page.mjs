// The page of projects/bundled, opened in Chromium.

import assert from 'node:assert/strict';

/** Loads the page; returns what it wrote, and the URLs of wasm that it fetched. `model` returns the address of a lane. */
export async function visit(browser, url, lane, model) {
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000); // for a machine with few and busy processors
  const complaints = [];
  const wasm = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on(
    'request',
    (request) => /\.wasm(\?|$)/.test(request.url()) && request.resourceType() === 'fetch' && wasm.push(request.url()),
  );
  await page.goto(`${url}?${new URLSearchParams({ model: model(lane), fetch: model(`${lane}-fetch`) })}`);
  await page
    .locator('#out[data-done]')
    .waitFor()
    .catch(() => assert.fail(`the page did not finish: ${complaints.join('\n')}`));
  const answer = JSON.parse(await page.locator('#out').textContent());
  await page.close();
  return { answer, wasm };
}

/** Asserts that the page of projects/bundled, or another one with the same program, has done everything. */
export function assertDone(answer) {
  assert.equal(answer.thrown, undefined);
  assert.deepEqual(
    answer.answers.map(({ status }) => status),
    ['finished', 'finished'],
  );
  assert.ok(answer.invocations >= 2, 'tools were called and stored');
  assert.ok(answer.findings.includes('orphan_result'));
  assert.deepEqual(answer.statuses, [400, 200], 'refused, and repaired by rethread/fetch');
  assert.ok(answer.oneError, 'one class of errors in every entry');
  assert.deepEqual(answer.kept, ['kept'], 'localStorage, of the second program');
}
