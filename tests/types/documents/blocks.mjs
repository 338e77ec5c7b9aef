// The JavaScript and TypeScript of a Markdown page, as programs.

import ts from 'typescript';

const FENCE = /^\s*```(\S*)/;
const LANGUAGES = { js: 'js', mjs: 'js', javascript: 'js', ts: 'ts', mts: 'ts', typescript: 'ts' };

/** [{language, line, source}]: `line` is the number of the first line of the source, from 1. */
export function blocksOf(page) {
  const blocks = [];
  let block = null;
  for (const [index, text] of page.split('\n').entries()) {
    const fence = FENCE.exec(text);
    if (!fence) block?.lines.push(text);
    else if (!block) block = { language: LANGUAGES[fence[1].toLowerCase()], line: index + 2, lines: [] };
    else {
      if (block.language)
        blocks.push({ language: block.language, line: block.line, source: `${block.lines.join('\n')}\n` });
      block = null;
    }
  }
  return blocks;
}

const blank = (source, start, end) =>
  source.slice(0, start) + source.slice(start, end).replace(/[^\n]/g, ' ') + source.slice(end);

/** {source, imports: [{text, names, line}]}: what can stand in a scope, and the imports that cannot. Lines and columns
 *  are those of the block. */
export function scoped({ source, line }) {
  const parsed = ts.createSourceFile('block.ts', source, ts.ScriptTarget.ESNext);
  const imports = [];
  for (const statement of parsed.statements) {
    const start = statement.getStart(parsed);
    if (ts.isImportDeclaration(statement)) {
      const { name, namedBindings } = statement.importClause ?? {};
      const named =
        namedBindings && ts.isNamedImports(namedBindings)
          ? namedBindings.elements.map((element) => element.name.text)
          : [namedBindings?.name.text];
      const text = source.slice(start, statement.end).replaceAll('\n', ' ');
      imports.push({
        text,
        names: [name?.text, ...named].filter(Boolean),
        line: line + parsed.getLineAndCharacterOfPosition(start).line,
      });
      source = blank(source, start, statement.end);
    }
    // The value of `export default` stays, as an expression.
    if (ts.isExportAssignment(statement))
      source = `${source.slice(0, start)}void          ${source.slice(start + 'export default'.length)}`;
    for (const modifier of (ts.canHaveModifiers(statement) && ts.getModifiers(statement)) || []) {
      if (modifier.kind === ts.SyntaxKind.ExportKeyword)
        source = blank(source, modifier.getStart(parsed), modifier.end);
    }
  }
  return { source, imports };
}

const NAMED = /^import \{ ([\w, ]+) \} from ("[^"]+");$/;
/** Files of the reader, which are one module here. */
const placeOf = (from) => from.replace(/^"(\.|@)\/.*/, 'own');

/** An import without the names that the page imports before from the same place; null if it has no others. */
function withoutKnown(found, imports) {
  const [, specifiers, from] = NAMED.exec(found.text) ?? [];
  if (specifiers !== found.names.join(', ')) return imports.some(({ text }) => text === found.text) ? null : found;
  const before = imports.filter(({ text }) => placeOf(NAMED.exec(text)?.[2] ?? '') === placeOf(from));
  const known = new Set(before.flatMap((one) => one.names));
  const names = found.names.filter((name) => !known.has(name));
  return names.length ? { ...found, names, text: `import { ${names.join(', ')} } from ${from};` } : null;
}

/**
 * The blocks as one module: each is a scope within the one before, so it sees the names of all blocks before it and may
 * declare them again. Every line of a block keeps its number; all imports stand in line 1, those of `prelude` (a list
 * like `imports`) first, unless the page has a name itself.
 */
export function moduleOf(blocks, prelude) {
  const lines = [];
  const imports = [];
  for (const block of blocks) {
    const scope = scoped(block);
    imports.push(...scope.imports.flatMap((found) => withoutKnown(found, imports) ?? []));
    while (lines.length < block.line - 2) lines.push('');
    lines.push('{', ...scope.source.split('\n').slice(0, -1));
  }
  const imported = new Set(imports.flatMap(({ names }) => names));
  const hoisted = [...prelude.filter(({ names }) => !names.some((name) => imported.has(name))), ...imports];
  let length = 0;
  const places = hoisted.map(({ text, line }) => ({ line, end: (length += text.length + 1) }));
  const first = lines.length ? lines.shift() : '';
  const source = [hoisted.map(({ text }) => `${text} `).join('') + first, ...lines, '}'.repeat(blocks.length)].join(
    '\n',
  );
  /** The line of the page for a position in the source. */
  const lineOf = (position) =>
    places.find(({ end }) => position < end)?.line ?? source.slice(0, position).split('\n').length;
  return { source, lineOf };
}
