// The check of the links of the pages: what it finds, and what it lets pass.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { broken, headingsOf, slugOf } from '../../.ci/links.mjs';

const OURS = 'https://github.com/rethread/rethread';

test('a link to a file or a heading that does not exist is found, with its line', () => {
  const page = [
    '# A page',
    '[gone](gone.md) and [storage](storage.md)',
    `[gone](${OURS}/tree/main/examples/gone)`,
    '[no heading](storage.md#no-heading), [here](#a-page), [nowhere](#nowhere)',
  ].join('\n');
  assert.deepEqual(broken('docs/page.md', page), [
    'docs/page.md:2: gone.md does not exist',
    `docs/page.md:3: ${OURS}/tree/main/examples/gone does not exist`,
    'docs/page.md:4: storage.md#no-heading has no such heading',
    'docs/page.md:4: #nowhere has no such heading',
  ]);
});

test('links that lead somewhere pass, and so do code and the rest of the web', () => {
  const page = [
    `[a file](../README.md#install), [a folder](rules), [GitHub](${OURS}/blob/main/README.md#install)`,
    '[the web](https://example.com/gone.md), `[code](gone.md)`',
    '```md',
    '[code](gone.md)',
    '```',
  ].join('\n');
  assert.deepEqual(broken('docs/page.md', page), []);
});

test('headings have the ids that GitHub gives them', () => {
  assert.equal(slugOf('What a provider refuses'), 'what-a-provider-refuses');
  assert.deepEqual(
    headingsOf('# `a_b`, c: "d"\n## Twice\n## Twice\n```\n# code\n```').map(({ id }) => id),
    ['a_b-c-d', 'twice', 'twice-1'],
  );
});
