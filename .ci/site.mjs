// The site of the documentation, built by VitePress from docs/, README and the public types into target/site/public.
//
//   npm run site
//   SITE_BASE=/rethread/ npm run site      for a site that does not begin at the root of its address
//
// A version has a folder of its own; the address without one leads to the version that was built last. Versions that
// are in the folder already stay, and are in the menu.

import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { npmPackage, npmPackages } from './servers.mjs';
import { read, root, run } from './shell.mjs';

const VITEPRESS = '1.6.4';
const TYPEDOC = '0.28.20';
const TYPEDOC_MARKDOWN = '4.14.1';
const TYPESCRIPT = '6.0.3';

const folder = path.join(root, 'target/site');
const source = path.join(folder, 'source');
const output = path.join(folder, 'public');

/** The entries of the package that have types, each once: ['rethread', 'rethread/host', …]. */
export function typedEntries() {
  const seen = new Set();
  return Object.entries(JSON.parse(read('package.json')).exports).flatMap(([name, { types }]) => {
    if (!types || seen.has(types)) return [];
    seen.add(types);
    return [path.posix.join('rethread', name)];
  });
}

/** Pages of the public types, a folder an entry of the package. */
async function writeReference() {
  const packages = [`typedoc@${TYPEDOC}`, `typedoc-plugin-markdown@${TYPEDOC_MARKDOWN}`, `typescript@${TYPESCRIPT}`];
  const typedoc = await npmPackages(`typedoc-${TYPEDOC}`, packages, 'typedoc-plugin-markdown');
  const entries = path.join(folder, 'entries');
  const files = typedEntries().map((name) => {
    const file = path.join(entries, `${name === 'rethread' ? 'rethread/index' : name}.ts`);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `export * from ${JSON.stringify(name)};\n`);
    return file;
  });
  const tsconfig = path.join(folder, 'tsconfig.json');
  const compilerOptions = {
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    module: 'nodenext',
    types: ['node'],
    typeRoots: [path.join(root, 'node_modules/@types')],
    skipLibCheck: true,
  };
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions, files }));
  const options = {
    entryPoints: files,
    tsconfig,
    plugin: ['typedoc-plugin-markdown'],
    out: path.join(source, 'api'),
    name: 'API reference',
    readme: 'none',
    basePath: root,
    displayBasePath: entries,
    disableSources: true,
    excludePrivate: true,
    router: 'member',
    entryFileName: 'index',
    hidePageHeader: true,
    hideBreadcrumbs: false,
    useHTMLEncodedBrackets: true,
    sanitizeComments: true,
    useCodeBlocks: true,
    parametersFormat: 'table',
  };
  const file = path.join(folder, 'typedoc.json');
  writeFileSync(file, JSON.stringify(options));
  await run(process.execPath, [path.join(typedoc, 'node_modules/typedoc/bin/typedoc'), '--options', file], {
    cwd: typedoc,
  });
}

/** The versions in the output folder, the newest first, with the one that is built. */
function versionsWith(version, base) {
  const built = existsSync(output) ? readdirSync(output, { withFileTypes: true }) : [];
  const names = new Set([version, ...built.filter((entry) => entry.isDirectory()).map(({ name }) => name)]);
  const inOrder = [...names].sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
  return inOrder.map((name) => ({ version: name, base: `${base}${name}/` }));
}

export async function buildSite() {
  const { version } = JSON.parse(read('package.json'));
  const base = process.env.SITE_BASE ?? '/';
  rmSync(source, { recursive: true, force: true });
  cpSync(path.join(root, 'docs'), source, { recursive: true });
  // README stands above docs/, so its links are those of a page there.
  const readme = read('README.md')
    .replace(/\]\((?![a-z]+:|#)/g, '](../')
    .replaceAll('](../docs/', '](');
  writeFileSync(path.join(source, 'index.md'), readme);
  await writeReference();
  const vitepress = await npmPackage('vitepress', VITEPRESS, 'vitepress/bin/vitepress.js');
  // The pages are programs that import vue.
  symlinkSync(path.join(vitepress, 'node_modules'), path.join(source, 'node_modules'), 'dir');
  const program = path.join(vitepress, 'node_modules/vitepress/bin/vitepress.js');
  const env = {
    SITE_BASE: `${base}${version}/`,
    SITE_VERSION: version,
    SITE_VERSIONS: JSON.stringify(versionsWith(version, base)),
    SITE_SLUGS: pathToFileURL(path.join(root, '.ci/links.mjs')).href,
  };
  await run(process.execPath, [program, 'build', source, '--outDir', path.join(output, version)], { env, cwd: source });
  const newest = `${base}${version}/`;
  writeFileSync(
    path.join(output, 'index.html'),
    `<!doctype html><meta charset="utf-8"><title>rethread</title><meta http-equiv="refresh" content="0; url=${newest}"><a href="${newest}">rethread ${version}</a>\n`,
  );
  return path.join(output, version);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(`\n${await buildSite()}`);
  } catch (error) {
    console.error(`site: ${error.message}`);
    process.exit(1);
  }
}
