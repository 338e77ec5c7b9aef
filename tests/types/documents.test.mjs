// The JavaScript of the README and of docs/ against the public types: each page a module, its blocks in their order.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { blocksOf, moduleOf } from './documents/blocks.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PRELUDE = path.join(root, 'tests/types/documents/prelude');
const PACKAGES = path.join(root, 'tests/types/documents/packages.d.ts');
const folder = (name) =>
  readdirSync(path.join(root, name), { recursive: true })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${name}/${file}`);
const PAGES = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', ...folder('docs')];

// JavaScript has no place for the types of parameters, so there those may be missing.
const OPTIONS = {
  noEmit: true,
  allowJs: true,
  checkJs: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noImplicitAny: false,
  skipLibCheck: true,
  target: ts.ScriptTarget.ESNext,
  lib: ['lib.esnext.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  types: ['node'],
};

/** One import for each name, in the form of `imports` in `scoped`. */
function preludeImports() {
  const parsed = ts.createSourceFile('prelude.d.ts', readFileSync(`${PRELUDE}.d.ts`, 'utf8'), ts.ScriptTarget.ESNext);
  const declared = parsed.statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) return statement.exportClause.elements.map(({ name }) => name.text);
    return ts.isVariableStatement(statement) ? statement.declarationList.declarations.map(({ name }) => name.text) : [];
  });
  return declared.map((name) => ({
    text: `import { ${name} } from ${JSON.stringify(`${PRELUDE}.js`)};`,
    names: [name],
    line: 1,
  }));
}

/** The statements that call a function of the package and leave its promise alone. */
function unawaited(file, checker) {
  const isOurs = (call) =>
    checker.getResolvedSignature(call)?.declaration?.getSourceFile().fileName.startsWith(path.join(root, 'js/'));
  const found = [];
  const visit = (node) => {
    const call = ts.isExpressionStatement(node) && ts.isCallExpression(node.expression) && node.expression;
    if (call && isOurs(call) && checker.getTypeAtLocation(call).getProperty('then'))
      found.push({ start: node.getStart(file), messageText: 'The promise is not awaited.' });
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** {page: text of Markdown} -> {page: ['docs/a.md:7: …']}. */
function complaints(pages) {
  const prelude = preludeImports();
  const modules = new Map();
  for (const [page, text] of Object.entries(pages)) {
    const blocks = blocksOf(text);
    for (const language of ['js', 'ts']) {
      const own = blocks.filter((block) => block.language === language);
      if (own.length) modules.set(path.join(root, `${page}.${language}`), { page, ...moduleOf(own, prelude) });
    }
  }
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile } = host;
  // A file beside the page would be the reader's.
  host.resolveModuleNameLiterals = (literals, from, _, options) =>
    literals.map(({ text }) => {
      const name = modules.has(from) && /^[.@]\//.test(text) ? `${PRELUDE}.js` : text;
      return ts.resolveModuleName(name, from, options, host, undefined, undefined, ts.ModuleKind.ESNext);
    });
  host.fileExists = (file) => modules.has(file) || fileExists(file);
  host.readFile = (file) => modules.get(file)?.source ?? readFile(file);
  host.getSourceFile = (file, version, ...rest) =>
    modules.has(file)
      ? ts.createSourceFile(file, modules.get(file).source, version, true)
      : getSourceFile(file, version, ...rest);
  const program = ts.createProgram([PACKAGES, ...modules.keys()], OPTIONS, host);
  const found = Object.fromEntries(Object.keys(pages).map((page) => [page, []]));
  for (const [name, { page, lineOf }] of modules) {
    const file = program.getSourceFile(name);
    const wrong = [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
      ...unawaited(file, program.getTypeChecker()),
    ];
    found[page].push(
      ...wrong.map(({ start, messageText }) => ({
        line: lineOf(start),
        text: ts.flattenDiagnosticMessageText(messageText, '\n  '),
      })),
    );
  }
  const inOrder = (list) => list.sort((one, other) => one.line - other.line);
  return Object.fromEntries(
    Object.entries(found).map(([page, list]) => [
      page,
      inOrder(list).map(({ line, text }) => `${page}:${line}: ${text}`),
    ]),
  );
}

const WRONG = `# A page

\`\`\`js
import { open, opens } from "rethread";
const own = await open();
const chat = await own.session("chat-1");
chat.clear();
await chat.compacted();
await chat.run({ input: "Hi", provider, tool: tools });
\`\`\`

\`\`\`ts
const own: number = session.id;
\`\`\`

\`\`\`mjs
export class Chat { title = chat.title; }
const own = await open();
own.revision;
\`\`\`
`;

describe('the blocks of a page', () => {
  let found;
  before(() => {
    const pages = PAGES.map((page) => [page, readFileSync(path.join(root, page), 'utf8')]);
    found = complaints({ ...Object.fromEntries(pages), 'docs/wrong.md': WRONG });
  });
  test('are checked: an unknown name, a promise that is not awaited, an unknown option, a wrong type', () => {
    const expected = [
      [4, /no exported member named 'opens'/],
      [7, /not awaited/],
      [8, /'compacted' does not exist/],
      [9, /'tool' does not exist in type 'RunRequest'/],
      [13, /Type 'string' is not assignable to type 'number'/],
      [19, /'revision' does not exist on type 'Rethread'/],
    ];
    assert.equal(found['docs/wrong.md'].length, expected.length, found['docs/wrong.md'].join('\n'));
    for (const [index, [line, message]] of expected.entries()) {
      assert.ok(found['docs/wrong.md'][index].startsWith(`docs/wrong.md:${line}: `), found['docs/wrong.md'][index]);
      assert.match(found['docs/wrong.md'][index], message);
    }
  });
  for (const page of PAGES) {
    if (!blocksOf(readFileSync(path.join(root, page), 'utf8')).length) continue;
    test(page, () => assert.deepEqual(found[page], [], found[page].join('\n')));
  }
});
