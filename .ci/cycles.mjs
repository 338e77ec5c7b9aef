// Import cycles between Rust files. A file depends on another if it names something that the other declares.
//
// Names are followed through `use` and `pub use` to the file that declares them, so re-exporting is not a dependency: a
// mod.rs that only declares and re-exports its children is in no cycle, even if they use each other through it.

import { sources } from './rust-source.mjs';

const USE = /(\bpub(?:\s*\([^)]*\))?\s+)?\buse\s+([^;]+);/g;
const PATH = /(?<![\w:])\w+(?:\s*::\s*\w+)+/g;
/** A word that may name an item of the module; not a method, a field access or a declared function. */
const WORD = /(?<![.\w]|\bfn )[A-Za-z_]\w*/g;
const INLINE_MOD = /\bmod\s+(\w+)\s*\{/g;

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** Splits at commas outside of braces. */
function members(text) {
  const found = [''];
  let depth = 0;
  for (const c of text) {
    if (c === '{') depth += 1;
    if (c === '}') depth -= 1;
    if (c === ',' && depth === 0) found.push('');
    else found[found.length - 1] += c;
  }
  return found.map((member) => member.trim()).filter(Boolean);
}

/** The imports of a `use` tree: `a::{b, c as d, e::*}` gives [{path: [a, b], name: b}, {path: [a, c], name: d}, {path:
 *  [a, e], name: '*'}]. */
function imports(tree, prefix = []) {
  const open = tree.indexOf('{');
  if (open >= 0) {
    const head = tree
      .slice(0, open)
      .split('::')
      .map((part) => part.trim())
      .filter(Boolean);
    return members(tree.slice(open + 1, tree.lastIndexOf('}'))).flatMap((member) =>
      imports(member, [...prefix, ...head]),
    );
  }
  const [written, alias] = tree.split(/\s+as\s+/).map((part) => part.trim());
  const path = [...prefix, ...written.split('::').map((part) => part.trim())].filter(Boolean);
  if (path.at(-1) === '*') return [{ path: path.slice(0, -1), name: '*' }];
  if (path.at(-1) === 'self' && path.length > 1) path.pop();
  return [{ path, name: alias ?? path.at(-1) }];
}

/** The inline modules of a text, as {name, start, end}. */
function inlineModules(text) {
  return [...text.matchAll(INLINE_MOD)].map((match) => {
    const start = match.index + match[0].length;
    let end = start;
    for (let depth = 1; depth && end < text.length; end += 1) depth += { '{': 1, '}': -1 }[text[end]] ?? 0;
    return { name: match[1], start, end };
  });
}

/** Reads a source file: its imports, the paths it names, and its words outside of imports. */
function parse({ file, module, code }) {
  const inline = inlineModules(code);
  const moduleAt = (at) => [
    ...module,
    ...inline.filter(({ start, end }) => start <= at && at < end).map(({ name }) => name),
  ];
  const uses = [];
  const rest = code.replace(USE, (text, visibility, tree, at) => {
    for (const found of imports(tree)) uses.push({ ...found, reexport: Boolean(visibility), from: moduleAt(at) });
    return blank(text);
  });
  const paths = [...rest.matchAll(PATH)].map((match) => ({
    path: match[0].split(/\s*::\s*/),
    from: moduleAt(match.index),
  }));
  return { file, module, uses, paths, inline: inline.map(({ name }) => name), words: new Set(rest.match(WORD)), rest };
}

/** Resolves paths of Rust modules to the files that declare what they name. */
class Resolver {
  #modules;

  constructor(parsed) {
    this.#modules = new Map(parsed.map((one) => [one.module.join('::'), one]));
  }

  /** The file of a module. An inline module is in the file of the module around it. */
  #at(module) {
    for (let length = module.length; length >= 0; length -= 1) {
      const one = this.#modules.get(module.slice(0, length).join('::'));
      if (one) return one;
    }
    return null;
  }

  #isModule(module) {
    return (
      this.#modules.has(module.join('::')) || (this.#at(module.slice(0, -1))?.inline.includes(module.at(-1)) ?? false)
    );
  }

  /** The file and name that `path`, written in module `from`, leads to; null for another crate, and for a module as
   *  such. */
  resolve(from, path, seen = new Set()) {
    let [first, ...rest] = path;
    let at = from;
    if (first === 'crate') at = [];
    else if (first === 'super') at = from.slice(0, -1);
    else if (first !== 'self') rest = path;
    while (rest[0] === 'super') [at, rest] = [at.slice(0, -1), rest.slice(1)];
    const local = rest === path;
    for (const [i, name] of rest.entries()) {
      const last = i === rest.length - 1;
      const imported = this.#imported(at, name, rest.slice(i + 1), seen);
      // A module and a function may have the same name: the last name of a path means the function.
      if (this.#isModule([...at, name]) && !(last && imported)) at = [...at, name];
      else if (imported) return imported;
      else if (local && i === 0 && !this.#declares(at, name)) return null;
      else return { file: this.#at(at)?.file, name };
    }
    return null;
  }

  #declares(module, name) {
    return new RegExp(
      String.raw`\b(?:struct|enum|trait|type|fn|const|static|union|macro_rules!)\s+(?:mut\s+)?${name}\b`,
    ).test(this.#at(module)?.rest ?? '');
  }

  /** Resolves `name`, followed by `more`, by an import of the module. */
  #imported(module, name, more, seen) {
    for (const { path, name: as, from } of this.#at(module)?.uses ?? []) {
      if (as !== name && as !== '*') continue;
      const key = `${from.join('::')}|${path.join('::')}|${as}|${name}`;
      if (seen.has(key)) continue;
      const inner = new Set(seen).add(key);
      if (as === name) {
        const found = this.resolve(from, [...path, ...more], inner);
        if (found) return found;
      } else {
        const found = this.resolve(from, [...path, name, ...more], inner);
        if (found && this.#declaresIn(found)) return found;
      }
    }
    return null;
  }

  #declaresIn({ file, name }) {
    const one = [...this.#modules.values()].find((other) => other.file === file);
    return one && this.#declares(one.module, name);
  }
}

/** Returns the dependencies between files: a map from a file to a map from another file to the names that it takes from
 *  there. */
export function importGraph() {
  const parsed = sources().map(parse);
  const resolver = new Resolver(parsed);
  const graph = new Map(parsed.map(({ file }) => [file, new Map()]));
  for (const { file, uses, paths, words } of parsed) {
    const add = (found) => {
      if (!found?.file || found.file === file) return;
      const names = graph.get(file).get(found.file) ?? new Set();
      graph.get(file).set(found.file, names.add(found.name));
    };
    for (const { path, name, from, reexport } of uses) {
      if (name === '*') for (const word of words) add(resolver.resolve(from, [word]));
      else if (!reexport || words.has(name)) add(resolver.resolve(from, path));
    }
    for (const { path, from } of paths) add(resolver.resolve(from, path));
  }
  return graph;
}

/** The strongly connected components of more than one node (Tarjan's algorithm). */
export function components(graph) {
  const index = new Map();
  const low = new Map();
  const stack = [];
  const found = [];
  const visit = (node) => {
    index.set(node, index.size);
    low.set(node, index.get(node));
    stack.push(node);
    for (const next of graph.get(node).keys()) {
      if (!index.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node), low.get(next)));
      } else if (stack.includes(next)) low.set(node, Math.min(low.get(node), index.get(next)));
    }
    if (low.get(node) !== index.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    if (component.length > 1) found.push(component.sort());
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return found;
}

/** Returns the groups of files that depend on each other, with the names that they use. */
export function cycles() {
  const graph = importGraph();
  return components(graph)
    .sort()
    .flatMap((group) => [
      `${group.length} files depend on each other:`,
      ...group.flatMap((file) =>
        [...graph.get(file)]
          .filter(([other]) => group.includes(other))
          .map(([other, names]) => `  ${file} -> ${other}: ${[...names].sort().join(', ')}`),
      ),
    ]);
}
