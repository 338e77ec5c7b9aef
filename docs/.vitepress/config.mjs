// The site of docs/, which `npm run site` builds (.ci/site.mjs). It lies in a copy, beside README as the first page and
// the API reference.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const { SITE_BASE = '/', SITE_VERSION = '', SITE_VERSIONS = '[]', SITE_SLUGS = '../../.ci/links.mjs' } = process.env;
const pages = fileURLToPath(new URL('..', import.meta.url));
const { slugOf } = await import(SITE_SLUGS);

const item = (text, link) => ({ text, link });

const GUIDES = [
  item('All guides', '/guides/'),
  item('Repair any SDK', '/guides/repair'),
  item('A chat in a browser', '/guides/browser'),
  item('A chat on a server', '/guides/server'),
  item('A chat in a Worker', '/guides/worker'),
  item('An approval by mail', '/guides/approval-by-mail'),
  item('Move from another library', '/guides/moving'),
];

const SESSIONS = [
  item('Sessions and runs', '/sessions'),
  item('Runs', '/runs'),
  item('A loop of your own', '/own-loop'),
  item('Resuming runs', '/resume'),
  item('Approvals and forms', '/approvals'),
  item('Results that come later', '/late-results'),
  item('Handoffs', '/handoffs'),
  item('Branches', '/branches'),
  item('A chat on a page', '/chat-page'),
  item('List and search', '/list-and-search'),
  item('Freshness', '/freshness'),
  item('Another provider or model', '/switching-models'),
  item('Long histories', '/long-histories'),
  item('History providers', '/history-providers'),
  item('Owners', '/owners'),
  item('Secrets', '/secrets'),
  item('Encryption', '/encryption'),
  item('Erasing messages', '/erasure'),
  item('Copies and backups', '/copies-and-backups'),
];

const RULES = [
  item('Rules', '/rules/'),
  item('What a provider says', '/rules/sentences'),
  ...['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'gemini-interactions', 'mistral', 'mistral-conversations', 'bedrock'].map((dialect) =>
    item(dialect, `/rules/${dialect}`),
  ),
  item('Findings without a rule', '/rules/findings'),
];

const STORES = [
  item('On a server', '/servers'),
  item('Write a store', '/stores'),
  item('Stored data', '/storage'),
  item('Components', '/component'),
];

const titled = (name) => name.replace(/\.md$/, '');
const headingOf = (file) => /^# (.*)$/m.exec(readFileSync(path.join(pages, file), 'utf8'))[1];

/** Every page of docs/ that no list has: those of other libraries, say. */
function others() {
  const listed = new Set([...SESSIONS, ...STORES].map(({ link }) => link));
  return readdirSync(pages)
    .filter((file) => file.endsWith('.md') && !['index.md', 'requirements.md'].includes(file))
    .map((file) => item(headingOf(file), `/${titled(file)}`))
    .filter(({ link }) => !listed.has(link));
}

/** The pages of a folder of the API reference, folder by folder. */
function reference(folder = 'api') {
  const entries = existsSync(path.join(pages, folder))
    ? readdirSync(path.join(pages, folder), { withFileTypes: true })
    : [];
  const own = entries
    .filter((entry) => entry.isFile() && entry.name !== 'index.md')
    .map(({ name }) => item(titled(name), `/${folder}/${titled(name)}`));
  const below = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => {
      const inner = `${folder}/${name}`;
      const link = existsSync(path.join(pages, inner, 'index.md')) ? { link: `/${inner}/` } : {};
      return { text: name, ...link, collapsed: true, items: reference(inner) };
    });
  return [...own, ...below];
}

const REPOSITORY = 'https://github.com/rethread/rethread';

/** Links that leave docs/: README is the first page, the types are the reference, all else is in the repository. */
function elsewhere(href, from) {
  if (/^([a-z]+:|#|\/)/.test(href)) return href;
  const [name, anchor] = href.split('#');
  const target = path.posix.normalize(path.posix.join('docs', path.posix.dirname(from), name));
  const hash = anchor ? `#${anchor}` : '';
  if (target === 'README.md') return `/index.md${hash}`;
  if (target === 'js/types' || target.startsWith('js/types/')) return '/api/index.md';
  return target.startsWith('docs/') ? href : `${REPOSITORY}/blob/main/${target}${hash}`;
}

/** A plugin of markdown-it. */
function linksElsewhere(markdown) {
  markdown.core.ruler.push('elsewhere', ({ tokens, env }) => {
    const inline = tokens.flatMap(({ children }) => children ?? []);
    for (const token of inline)
      if (token.type === 'link_open') token.attrSet('href', elsewhere(token.attrGet('href'), env.relativePath));
  });
}

/** What is searched of a page. The table of the project's own tests has every word. */
async function searched(text, env, markdown) {
  return env.relativePath === 'requirements.md' ? '' : markdown.render(text, env);
}

/** All words must occur: those of a provider's sentence are common ones. */
const miniSearch = { searchOptions: { combineWith: 'AND', fuzzy: 0.1, prefix: true } };

/** Tables are as wide as the page, and long sentences in them wrap. */
const TABLES =
  '.vp-doc table { display: table; width: 100% } .vp-doc td:last-child, .vp-doc td:last-child code { overflow-wrap: anywhere }';

export default {
  title: 'rethread',
  description: 'The history layer for chats that call tools',
  base: SITE_BASE,
  head: [['style', {}, TABLES]],
  cleanUrls: false,
  rewrites: { 'rules/README.md': 'rules/index.md', 'guides/README.md': 'guides/index.md' },
  markdown: { anchor: { slugify: slugOf }, config: linksElsewhere },
  themeConfig: {
    search: { provider: 'local', options: { _render: searched, miniSearch } },
    outline: [2, 3],
    nav: [
      item('Guides', '/guides/'),
      item('Sessions', '/sessions'),
      item('Rules', '/rules/sentences'),
      item('API', '/api/'),
      {
        text: SITE_VERSION,
        items: [
          item('Changelog', `${REPOSITORY}/blob/main/CHANGELOG.md`),
          ...JSON.parse(SITE_VERSIONS).map(({ version, base }) => ({ text: version, link: base, target: '_self' })),
        ],
      },
    ],
    sidebar: {
      '/api/': [{ text: 'API reference', link: '/api/', items: reference() }],
      '/': [
        { text: 'Guides', items: GUIDES },
        { text: 'Sessions and runs', items: SESSIONS },
        { text: 'Libraries', items: others() },
        { text: 'Stores and platforms', items: STORES },
        { text: 'Rules of providers', items: RULES },
      ],
    },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
  },
};
