// The commands.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { convert, RethreadError, repair, validate } from '../entry/formats-node.js';
import { CONVERSATION_MEMBERS, DIALECTS, SYSTEM_MEMBERS } from '../dialects.js';
import { guessDialect } from './dialect.js';
import { cureOf, explanation, rulesIn, seeAlso } from './explain.js';
import { bytesOf, readConversation, readConversations, write } from './file.js';
import { HELP } from './help.js';
import { itemTexts, memberText } from './formats.js';
import { Misuse } from './misuse.js';
import { count, escaped, lines, paintFor, plural, summary } from './report.js';

/** @satisfies {NonNullable<import('node:util').ParseArgsConfig['options']>} */
const OPTIONS = {
  dialect: { type: 'string', short: 'd' },
  from: { type: 'string' },
  to: { type: 'string' },
  out: { type: 'string', short: 'o' },
  json: { type: 'boolean' },
  'dangling-calls': { type: 'string' },
  'dangling-text': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
};
const WRITING = ['json', 'out', 'dangling-calls', 'dangling-text'];
/** The commands: the function, its options, and whether it takes several arguments. */
const COMMANDS = {
  check: [check, ['dialect', 'json'], true],
  repair: [repairFile, ['dialect', ...WRITING], false],
  convert: [convertFile, ['from', 'to', ...WRITING], false],
  explain: [explain, ['dialect'], true],
};

function argumentsOf(args) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new Misuse(error.message.split('. ')[0]);
  }
}

const oneOf = (names) => `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;

function knownDialect(dialect) {
  if (!DIALECTS.includes(dialect)) throw new Misuse(`"${dialect}" is not a dialect; use ${oneOf(DIALECTS)}`);
  return dialect;
}

/** Returns the `unknown_shape` errors: items that belong to no dialect, such as messages of an SDK. */
function foreignFindings(conversation, guess) {
  const dialect = guess?.dialect ?? 'openai-chat';
  const framed = frame(conversation, dialect);
  const found = validate(framed.text, dialect).filter(
    ({ code, severity }) => code === 'unknown_shape' && severity === 'error',
  );
  return withFilePaths(found, framed);
}

/** Returns the dialect of the option, else the one that the shape suggests; null, with the errors in `foreign`, for
 *  another format. */
function chooseDialect(requested, conversation, note, option) {
  const guess = guessDialect(conversation);
  if (requested !== undefined) return { dialect: knownDialect(requested), why: null, guess };
  const foreign = foreignFindings(conversation, guess);
  if (foreign.length) return { dialect: null, why: null, guess: null, foreign };
  if (!guess) {
    throw new Misuse(`the dialect of ${conversation.name} cannot be recognized; pass ${option} ${oneOf(DIALECTS)}`);
  }
  note(`read as ${guess.dialect}, because ${guess.why}; ${option} overrides this`);
  return { ...guess, guess };
}

/** Like `chooseDialect`, for commands that need a dialect. */
function requireDialect(requested, conversation, note, option) {
  const chosen = chooseDialect(requested, conversation, note, option);
  if (chosen.dialect === null)
    throw new Misuse(`${conversation.name} is not in a dialect: ${chosen.foreign[0].message}`);
  return chosen;
}

/** Returns the conversation as a body of the dialect. `toFilePath` maps a JSON pointer into that body to one into the
 *  file. */
function frame(conversation, dialect) {
  const list = CONVERSATION_MEMBERS[dialect];
  if (conversation.form === 'body') {
    const items = conversation.value?.[list];
    return { text: conversation.text, list, items: Array.isArray(items) ? items : [], toFilePath: (path) => path };
  }
  const base = `/${list}`;
  const toFilePath = (path) => (path === base ? '' : path?.startsWith(`${base}/`) ? path.slice(base.length) : path);
  return { text: `{"${list}":${conversation.text}}`, list: null, items: conversation.items, toFilePath };
}

/** Returns a repaired or converted body in the form of the conversation: a body, an array, or JSON Lines. */
function unframed(body, framed, conversation, dialect, note) {
  if (body === framed.text) return conversation.original;
  if (conversation.form === 'body') return body;
  const systemMember = Object.keys(JSON.parse(body)).find((key) => SYSTEM_MEMBERS.includes(key));
  const list = memberText(body, CONVERSATION_MEMBERS[dialect]);
  if (systemMember || list === undefined) {
    note(
      `in ${dialect} a part of the conversation is outside of the messages${systemMember ? `, in \`${systemMember}\`` : ''}, so a complete body is written`,
    );
    return `${body}\n`;
  }
  if (conversation.form === 'list') return `${list}\n`;
  return itemTexts(list)
    .map((item) => `${item.replace(/[\r\n]+/g, ' ')}\n`)
    .join('');
}

/** Returns the findings as text lines, followed by references to their rules. */
function findingLines(findings, framed, conversation, { dialect, paint }) {
  const roleOf = (n) => framed.items[n]?.role ?? framed.items[n]?.type;
  const placeOf = (n) => (conversation.lines?.[n] ? `, line ${conversation.lines[n]}` : '');
  const related = dialect === null ? [] : seeAlso(findings, dialect).map((line) => paint('dim', line));
  return [...lines(findings, { list: framed.list, roleOf, placeOf }, paint), ...related];
}

const withFilePaths = (findings, framed) =>
  findings.map((finding) => ('path' in finding ? { ...finding, path: framed.toFilePath(finding.path) } : finding));

function reportOf({ name, form }, { dialect, why }, findings, more) {
  const { errors, warnings } = count(findings);
  return { file: name, form, dialect, guessed: why, ...more, errors, warnings, findings };
}

/** Checks the conversations of files. The exit code is 1 if the provider rejects one of them, 2 if one of the files
 *  cannot be read. */
async function check(files, values, io) {
  const results = [];
  let isUnreadable = false;
  for (const file of files) {
    try {
      const conversations = await readConversations(file, io.stdin);
      const isOneOfMany = conversations.length > 1 || files.length > 1;
      for (const conversation of conversations) results.push(checked(conversation, values, io, isOneOfMany));
    } catch (error) {
      // What the other files have is printed.
      if (files.length === 1 || !(error instanceof Misuse)) throw error;
      isUnreadable = true;
      results.push({
        ok: false,
        text: escaped(error.message),
        json: { file, form: 'unreadable', ok: false, what: error.message },
      });
    }
  }
  const failed = results.filter(({ ok }) => !ok).length;
  if (values.json) {
    const reports = results.map(({ json }) => json);
    io.stdout.write(`${JSON.stringify(reports.length === 1 ? reports[0] : reports, null, 2)}\n`);
  } else {
    for (const { text } of results) io.stdout.write(`${text}\n`);
    if (results.length > 1) io.stdout.write(`${plural(results.length, 'conversation')}, ${failed} not accepted\n`);
  }
  if (isUnreadable) return 2;
  return failed ? 1 : 0;
}

/** {ok, text, json} of one conversation. `isOneOfMany`: what cannot be recognized does not end the command. */
function checked(conversation, values, { stdout, stderr, env }, isOneOfMany) {
  const { name, form } = conversation;
  const paint = paintFor(stdout, env);
  if (form === 'error') return checkedError(conversation, values, paint);
  if (form === 'foreign')
    return {
      ok: false,
      text: `${paint('bold', escaped(name))}: ${escaped(conversation.what)}`,
      json: { file: name, form, ok: false, what: conversation.what },
    };
  const note = (text) => stderr.write(`rethread: ${text}\n`);
  let chosen;
  try {
    chosen = chooseDialect(values.dialect, conversation, values.json ? () => {} : note, '--dialect');
  } catch (error) {
    if (!isOneOfMany || !(error instanceof Misuse)) throw error;
    return {
      ok: false,
      text: `${paint('bold', escaped(name))}: ${error.message}`,
      json: { file: name, form, ok: false, what: error.message },
    };
  }
  const framed = frame(conversation, chosen.dialect ?? 'openai-chat');
  const findings = chosen.foreign ?? withFilePaths(validate(framed.text, chosen.dialect), framed);
  const { errors } = count(findings);
  const looksLike = errors && chosen.guess && chosen.guess.dialect !== chosen.dialect ? chosen.guess : undefined;
  if (values.json)
    return { ok: errors === 0, json: reportOf(conversation, chosen, findings, { ok: errors === 0, looksLike }) };
  if (looksLike) note(`it looks like ${looksLike.dialect}: ${looksLike.why}`);
  const title = `${escaped(name)}: ${chosen.dialect ?? 'no dialect'}, ${plural(framed.items.length, 'message')}, ${summary(findings)}`;
  return {
    ok: errors === 0,
    text: [
      paint('bold', title),
      ...findingLines(findings, framed, conversation, { dialect: chosen.dialect, paint }),
    ].join('\n'),
  };
}

/** The rules that an error of a provider is about, each with the line that cures it. */
function checkedError({ name, text }, { dialect }, paint) {
  const rules = rulesIn(text, dialect === undefined ? undefined : knownDialect(dialect)).map((rule) => ({
    dialect: rule.dialect,
    code: rule.code,
    cure: cureOf(rule.section),
  }));
  const title = paint(
    'bold',
    `${escaped(name)}: an error of a provider, not a conversation; ${rules.length ? 'it is known' : 'there is no rule for it'}`,
  );
  const cures = rules.flatMap((rule) => [
    ...(rule.cure ? [`  cure: ${rule.cure}`] : []),
    paint('dim', `see: npx rethread explain ${rule.code} --dialect ${rule.dialect}`),
  ]);
  return { ok: false, text: [title, ...cures].join('\n'), json: { file: name, form: 'error', ok: false, rules } };
}

/** Writes a repaired or converted body to the output, and its report to standard error. */
function writeResult({ body, report, framed, conversation, chosen, target, note }, values, { stdout, stderr, env }) {
  const findings = withFilePaths(report, framed);
  const remaining = count(validate(body, target)).errors;
  const to = target === chosen.dialect ? undefined : target;
  if (values.json) {
    stderr.write(`${JSON.stringify(reportOf(conversation, chosen, findings, { to, ok: remaining === 0 }), null, 2)}\n`);
  } else {
    const paint = paintFor(stderr, env);
    const repaired = remaining === 0 && count(findings).errors ? ', repaired' : '';
    const title = `${conversation.name}: ${chosen.dialect}${to ? ` to ${to}` : ''}, ${summary(findings)}${repaired}`;
    stderr.write(
      `${[paint('bold', title), ...findingLines(findings, framed, conversation, { dialect: target, paint })].join('\n')}\n`,
    );
  }
  write(unframed(body, framed, conversation, target, note), values.out, stdout);
  return remaining ? 1 : 0;
}

function repairOptions(values) {
  const danglingCalls = values['dangling-calls'];
  if (danglingCalls !== undefined && !['synthesize', 'omit'].includes(danglingCalls)) {
    throw new Misuse(`--dangling-calls is "synthesize" or "omit", not "${danglingCalls}"`);
  }
  return { danglingCalls, danglingText: values['dangling-text'] };
}

async function repairFile([file], values, { stdin, stdout, stderr, env }) {
  const options = repairOptions(values);
  const conversation = await readConversation(file, stdin);
  const note = values.json ? () => {} : (text) => stderr.write(`rethread: ${text}\n`);
  const chosen = requireDialect(values.dialect, conversation, note, '--dialect');
  const framed = frame(conversation, chosen.dialect);
  const { body, report } = repair(framed.text, chosen.dialect, options);
  return writeResult({ body, report, framed, conversation, chosen, target: chosen.dialect, note }, values, {
    stdout,
    stderr,
    env,
  });
}

async function convertFile([file], values, { stdin, stdout, stderr, env }) {
  const options = repairOptions(values);
  if (values.to === undefined) throw new Misuse(`convert needs --to ${oneOf(DIALECTS)}`);
  const target = knownDialect(values.to);
  const conversation = await readConversation(file, stdin);
  const note = values.json ? () => {} : (text) => stderr.write(`rethread: ${text}\n`);
  const chosen = requireDialect(values.from, conversation, note, '--from');
  const framed = frame(conversation, chosen.dialect);
  const { body, report } = convert(framed.text, chosen.dialect, target, options);
  return writeResult({ body, report, framed, conversation, chosen, target, note }, values, { stdout, stderr, env });
}

async function explain(words, values, { stdin, stdout }) {
  // A sentence that was pasted without quotation marks is several arguments.
  const asked = words.length === 1 && words[0] === '-' ? (await bytesOf('-', stdin)).toString('utf8') : words.join(' ');
  stdout.write(explanation(asked.trim(), values.dialect === undefined ? undefined : knownDialect(values.dialect)));
  return 0;
}

/** What to do in place of a command that there is not. */
const UNKNOWN = {
  heal: 'requests that a provider refused are healed as they are sent, by `repairing()` of "rethread/fetch" or `heal` of "rethread"; `explain` knows the sentence of the refusal',
};

function checkCommand(name) {
  if (Object.hasOwn(COMMANDS, name)) return;
  const advice = Object.hasOwn(UNKNOWN, name) ? `: ${UNKNOWN[name]}` : '';
  throw new Misuse(`"${name}" is not a command${advice}; use ${oneOf(Object.keys(COMMANDS))}`);
}

async function run(args, io) {
  const { values, positionals } = argumentsOf(args);
  const [name, ...given] = positionals;
  // The help is that of all commands.
  if (name !== undefined) checkCommand(name);
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  if (values.version) {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    io.stdout.write(`${version}\n`);
    return 0;
  }
  if (name === undefined) throw new Misuse(`pass a command: ${oneOf(Object.keys(COMMANDS))}`);
  if (!given.length)
    throw new Misuse(
      name === 'explain'
        ? 'explain needs the code of a finding, such as dangling_call, or what a provider said'
        : `${name} needs a file, or "-" for standard input`,
    );
  const [command, options, takesMany] = COMMANDS[name];
  if (!takesMany && given.length > 1) throw new Misuse(`${name} takes one file, not ${given.length}`);
  const unknown = Object.keys(values).find((option) => !options.includes(option));
  if (unknown) throw new Misuse(`${name} has no option --${unknown}`);
  return command(given, values, io);
}

/** Runs the command line; returns the exit code. */
export async function main(args, io) {
  try {
    return await run(args, io);
  } catch (error) {
    if (!(error instanceof Misuse) && !(error instanceof RethreadError)) throw error;
    io.stderr.write(`rethread: ${error.message}\n${error instanceof Misuse ? 'See: rethread --help\n' : ''}`);
    return 2;
  }
}
