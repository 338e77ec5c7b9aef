// The commands.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { convert, RethreadError, repair, validate } from '../entry/formats-node.js';
import { ASIDE, DIALECTS, guessDialect } from './dialect.js';
import { explanation } from './explain.js';
import { itemsOf, memberOf, readConversation, write } from './file.js';
import { HELP } from './help.js';
import { Misuse } from './misuse.js';
import { count, lines, paintFor, plural, summary } from './report.js';

/** @satisfies {NonNullable<import('node:util').ParseArgsConfig['options']>} */
const OPTIONS = {
  dialect: { type: 'string', short: 'd' }, from: { type: 'string' }, to: { type: 'string' }, out: { type: 'string', short: 'o' }, json: { type: 'boolean' },
  'dangling-calls': { type: 'string' }, 'dangling-text': { type: 'string' },
  help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' },
};
const WRITING = ['json', 'out', 'dangling-calls', 'dangling-text'];
const COMMANDS = { check: [check, ['dialect', 'json']], repair: [mend, ['dialect', ...WRITING]], convert: [translate, ['from', 'to', ...WRITING]], explain: [explain, ['dialect']] };

function argumentsOf(given) {
  try {
    return parseArgs({ args: given, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new Misuse(error.message.split('. ')[0]);
  }
}

const oneOf = (names) => `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;

function known(dialect) {
  if (!Object.hasOwn(DIALECTS, dialect)) throw new Misuse(`"${dialect}" is no dialect: say ${oneOf(Object.keys(DIALECTS))}`);
  return dialect;
}

/** What `validate` finds that is of no dialect: messages of an SDK, or of nobody. Empty where a dialect can be read. */
function shapesOf(conversation, guess) {
  const dialect = guess?.dialect ?? 'openai-chat';
  const framed = frame(conversation, dialect);
  const found = validate(framed.text, dialect).filter(({ code, severity }) => code === 'unknown_shape' && severity === 'error');
  return placed(found, framed);
}

/** The dialect that was said, or that the shape says; none, with `shapes`, for what is of no dialect. */
function chosenFor(given, conversation, say, option) {
  const guess = guessDialect(conversation);
  if (given !== undefined) return { dialect: known(given), why: null, guess };
  const shapes = shapesOf(conversation, guess);
  if (shapes.length) return { dialect: null, why: null, guess: null, shapes };
  if (!guess) {
    throw new Misuse(`the dialect of ${conversation.name} does not show in its shape: say ${option} ${oneOf(Object.keys(DIALECTS))}`);
  }
  say(`read as ${guess.dialect}, because ${guess.why}; ${option} says otherwise`);
  return { ...guess, guess };
}

/** As `chosenFor`, for commands that need a dialect. */
function dialectOf(given, conversation, say, option) {
  const chosen = chosenFor(given, conversation, say, option);
  if (chosen.dialect === null) throw new Misuse(`${conversation.name} is in no dialect: ${chosen.shapes[0].message}`);
  return chosen;
}

/** The conversation as a body of the dialect, and back: what stood in a bare array is named from there. */
function frame(conversation, dialect) {
  const list = DIALECTS[dialect];
  if (conversation.form === 'body') {
    const items = conversation.value?.[list];
    return { text: conversation.text, list, items: Array.isArray(items) ? items : [], own: (path) => path };
  }
  const base = `/${list}`;
  const own = (path) => (path === base ? '' : path?.startsWith(`${base}/`) ? path.slice(base.length) : path);
  return { text: `{"${list}":${conversation.text}}`, list: null, items: conversation.items, own };
}

/** A body that was made, in the form in which the conversation came. */
function unframed(body, framed, conversation, dialect, say) {
  if (body === framed.text) return conversation.given;
  if (conversation.form === 'body') return body;
  const aside = Object.keys(JSON.parse(body)).find((key) => ASIDE.includes(key));
  const list = memberOf(body, DIALECTS[dialect]);
  if (aside || list === undefined) {
    say(`in ${dialect} a part of the conversation stands beside the messages${aside ? `, in \`${aside}\`` : ''}: written as a whole body`);
    return `${body}\n`;
  }
  if (conversation.form === 'list') return `${list}\n`;
  return itemsOf(list).map((item) => `${item.replace(/[\r\n]+/g, ' ')}\n`).join('');
}

function told(findings, framed, conversation, paint) {
  const roleOf = (n) => framed.items[n]?.role ?? framed.items[n]?.type;
  const placeOf = (n) => (conversation.lines?.[n] ? `, line ${conversation.lines[n]}` : '');
  return lines(findings, { list: framed.list, roleOf, placeOf }, paint);
}

const placed = (findings, framed) => findings.map((finding) => ('path' in finding ? { ...finding, path: framed.own(finding.path) } : finding));

function asJson({ name, form }, { dialect, why }, findings, more) {
  const { errors, warnings } = count(findings);
  return `${JSON.stringify({ file: name, form, dialect, guessed: why, ...more, errors, warnings, findings }, null, 2)}\n`;
}

async function check(file, values, { stdin, stdout, stderr, env }) {
  const conversation = await readConversation(file, stdin);
  const note = (text) => stderr.write(`rethread: ${text}\n`);
  const chosen = chosenFor(values.dialect, conversation, values.json ? () => {} : note, '--dialect');
  const framed = frame(conversation, chosen.dialect ?? 'openai-chat');
  const findings = chosen.shapes ?? placed(validate(framed.text, chosen.dialect), framed);
  const { errors } = count(findings);
  if (values.json) {
    stdout.write(asJson(conversation, chosen, findings, { ok: errors === 0 }));
  } else {
    const paint = paintFor(stdout, env);
    const title = `${conversation.name}: ${chosen.dialect ?? 'no dialect'}, ${plural(framed.items.length, 'message')}, ${summary(findings)}`;
    stdout.write(`${[paint('bold', title), ...told(findings, framed, conversation, paint)].join('\n')}\n`);
    const { guess } = chosen;
    if (errors && guess && guess.dialect !== chosen.dialect) note(`it looks like ${guess.dialect}: ${guess.why}`);
  }
  return errors ? 1 : 0;
}

/** Hands over a body that was made: it alone on standard output, what is to be told of it on standard error. */
function hand({ body, report, framed, conversation, chosen, target, say }, values, { stdout, stderr, env }) {
  const findings = placed(report, framed);
  const left = count(validate(body, target)).errors;
  const to = target === chosen.dialect ? undefined : target;
  if (values.json) {
    stderr.write(asJson(conversation, chosen, findings, { to, ok: left === 0 }));
  } else {
    const paint = paintFor(stderr, env);
    const mended = left === 0 && count(findings).errors ? ', mended' : '';
    const title = `${conversation.name}: ${chosen.dialect}${to ? ` to ${to}` : ''}, ${summary(findings)}${mended}`;
    stderr.write(`${[paint('bold', title), ...told(findings, framed, conversation, paint)].join('\n')}\n`);
  }
  write(unframed(body, framed, conversation, target, say), values.out, stdout);
  return left ? 1 : 0;
}

function repairOptions(values) {
  const danglingCalls = values['dangling-calls'];
  if (danglingCalls !== undefined && !['synthesize', 'omit'].includes(danglingCalls)) {
    throw new Misuse(`--dangling-calls is "synthesize" or "omit", not "${danglingCalls}"`);
  }
  return { danglingCalls, danglingText: values['dangling-text'] };
}

async function mend(file, values, { stdin, stdout, stderr, env }) {
  const options = repairOptions(values);
  const conversation = await readConversation(file, stdin);
  const note = (text) => stderr.write(`rethread: ${text}\n`);
  const say = values.json ? () => {} : note;
  const chosen = dialectOf(values.dialect, conversation, say, '--dialect');
  const framed = frame(conversation, chosen.dialect);
  const { body, report } = repair(framed.text, chosen.dialect, options);
  return hand({ body, report, framed, conversation, chosen, target: chosen.dialect, say }, values, { stdout, stderr, env });
}

async function translate(file, values, { stdin, stdout, stderr, env }) {
  const options = repairOptions(values);
  if (values.to === undefined) throw new Misuse(`convert wants --to ${oneOf(Object.keys(DIALECTS))}`);
  const target = known(values.to);
  const conversation = await readConversation(file, stdin);
  const say = values.json ? () => {} : (text) => stderr.write(`rethread: ${text}\n`);
  const chosen = dialectOf(values.from, conversation, say, '--from');
  const framed = frame(conversation, chosen.dialect);
  const { body, report } = convert(framed.text, chosen.dialect, target, options);
  return hand({ body, report, framed, conversation, chosen, target, say }, values, { stdout, stderr, env });
}

function explain(code, values, { stdout }) {
  stdout.write(explanation(code, values.dialect === undefined ? undefined : known(values.dialect)));
  return 0;
}

async function run(given, io) {
  const { values, positionals } = argumentsOf(given);
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  if (values.version) {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    io.stdout.write(`${version}\n`);
    return 0;
  }
  const [name, file, ...rest] = positionals;
  if (name === undefined) throw new Misuse(`say what to do: ${oneOf(Object.keys(COMMANDS))}`);
  if (!Object.hasOwn(COMMANDS, name)) throw new Misuse(`"${name}" is no command: say ${oneOf(Object.keys(COMMANDS))}`);
  const isExplain = name === 'explain';
  if (file === undefined) throw new Misuse(isExplain ? 'explain needs the code of a finding, such as dangling_call' : `${name} wants a file, or "-" for standard input`);
  if (rest.length) throw new Misuse(`${name} takes one ${isExplain ? 'code' : 'file'}, and ${rest.length + 1} were given`);
  const [command, takes] = COMMANDS[name];
  const other = Object.keys(values).find((option) => !takes.includes(option));
  if (other) throw new Misuse(`${name} has no option --${other}`);
  return command(file, values, io);
}

/** Answers the exit code. */
export async function main(given, io) {
  try {
    return await run(given, io);
  } catch (error) {
    if (!(error instanceof Misuse) && !(error instanceof RethreadError)) throw error;
    io.stderr.write(`rethread: ${error.message}\n${error instanceof Misuse ? 'See: rethread --help\n' : ''}`);
    return 2;
  }
}
