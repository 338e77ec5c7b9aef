// The links of the Markdown pages: each leads to a file of the repository, and to a heading of it.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { files, read, root } from './shell.mjs';

const TOP = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];

/** The id that GitHub gives a heading, from its text without markup. */
export function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** The lines of a page outside of its code blocks: [{line, text}]. */
export function prose(page) {
  let inBlock = false;
  return page.split('\n').flatMap((text, index) => {
    const isFence = /^\s*```/.test(text);
    if (isFence) inBlock = !inBlock;
    return inBlock || isFence ? [] : [{ line: index + 1, text }];
  });
}

/** [{line, text, id}]: the headings of a page. The id of a repeated one has a number. */
export function headingsOf(page) {
  const ids = new Set();
  return prose(page).flatMap(({ line, text }) => {
    const heading = /^#{1,6} (.*)$/.exec(text);
    if (!heading) return [];
    const plain = heading[1].replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
    const slug = slugOf(plain);
    let id = slug;
    for (let n = 1; ids.has(id); n += 1) id = `${slug}-${n}`;
    ids.add(id);
    return [{ line, text: plain, id }];
  });
}

/** [{line, target}]: the links and images of a page, without those in code. */
export function linksOf(page) {
  return prose(page).flatMap(({ line, text }) =>
    [...text.replace(/`[^`]*`/g, '``').matchAll(/\]\(([^()\s]+)\)/g)].map((match) => ({ line, target: match[1] })),
  );
}

/** The path in the repository that an address of its files on GitHub has; null for every other address. */
function publishedPath(target) {
  const repository = /^repository = "https:\/\/github\.com\/(.+)"$/m.exec(read('Cargo.toml'))[1];
  const bases = [
    `https://github.com/${repository}/blob/main/`,
    `https://github.com/${repository}/tree/main/`,
    `https://raw.githubusercontent.com/${repository}/main/`,
  ];
  const base = bases.find((one) => target.startsWith(one));
  return base ? target.slice(base.length) : null;
}

/** The links of a page that lead nowhere. Of addresses of the web only those of this repository's files are checked. */
export function broken(file, page) {
  return linksOf(page).flatMap(({ line, target }) => {
    const published = publishedPath(target);
    if (/^[a-z]+:/.test(target) && published === null) return [];
    const [name, anchor] = (published ?? target).split('#');
    const found = name && path.resolve(root, published === null ? path.dirname(file) : '', name);
    if (name && !existsSync(found)) return [`${file}:${line}: ${target} does not exist`];
    if (anchor === undefined) return [];
    const text = name ? found.endsWith('.md') && readFileSync(found, 'utf8') : page;
    return text !== false && headingsOf(text).some(({ id }) => id === anchor)
      ? []
      : [`${file}:${line}: ${target} has no such heading`];
  });
}

/** Every link of the README, of docs/ and of the other pages leads to a file, and to a heading where it names one. */
export function links() {
  const pages = [...TOP, ...files('docs', '.md'), ...files('examples', '.md'), ...files('tests', '.md')];
  return pages.flatMap((file) => broken(file, read(file)));
}
