// The menus of the documentation's site: a generator finds dead links in pages, and not in menus. With RETHREAD_LONG
// the site itself is built.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildSite, typedEntries } from '../../.ci/site.mjs';
import config from '../../docs/.vitepress/config.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { nav, sidebar } = config.themeConfig;
const linksOf = ({ link, items = [] }) => [...(link ? [link] : []), ...items.flatMap(linksOf)];

/** The file of docs/ that a link of a menu leads to. */
function fileOf(link) {
  const name = link.endsWith('/') ? `${link}README` : link;
  return path.join(root, 'docs', `${name}.md`);
}

test('every page of the menus exists', () => {
  const inPages = [...sidebar['/'], ...nav]
    .flatMap(linksOf)
    .filter((link) => link.startsWith('/') && !link.startsWith('/api'));
  assert.ok(inPages.length > 40);
  assert.deepEqual(
    inPages.filter((link) => !existsSync(fileOf(link))),
    [],
  );
});

test('every page for applications is in a menu', () => {
  const listed = new Set(sidebar['/'].flatMap(linksOf).map(fileOf));
  const pages = ['.', 'guides', 'rules'].flatMap((folder) =>
    readdirSync(path.join(root, 'docs', folder))
      .filter((file) => file.endsWith('.md') && file !== 'requirements.md')
      .map((file) => path.join(root, 'docs', folder, file)),
  );
  assert.deepEqual(
    pages.filter((file) => !listed.has(file)),
    [],
  );
});

test('the reference has every entry of the package once', () => {
  const entries = typedEntries();
  assert.ok(entries.includes('rethread') && entries.includes('rethread/host') && entries.includes('rethread/ai-sdk'));
  assert.ok(!entries.includes('rethread/slim'), 'its types are those of rethread');
});

test('the site is built: every page, the reference, the search', { skip: !process.env.RETHREAD_LONG }, async () => {
  const folder = await buildSite();
  const read = (file) => readFileSync(path.join(folder, file), 'utf8');
  assert.match(read('index.html'), /The history layer for chats that call tools/);
  assert.match(read('rules/sentences.html'), /bound to a different conversation/);
  assert.match(read('own-loop.html'), /id="after-a-restart"/);
  assert.match(read('api/rethread/interfaces/Session.html'), /compact/);
  for (const entry of typedEntries()) assert.ok(existsSync(path.join(folder, 'api', entry)), entry);
  const assets = readdirSync(path.join(folder, 'assets/chunks'));
  assert.ok(assets.some((file) => file.includes('localSearchIndex')));
  assert.match(readFileSync(path.join(folder, '../index.html'), 'utf8'), /url=\/0\.\d+\.\d+\//);
});
