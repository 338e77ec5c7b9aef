// The commands.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { RethreadError, repair, validate } from '../entry/node.js';
import { DIALECTS, guessDialect } from './dialect.js';
import { itemsOf, readConversation, write } from './file.js';
import { HELP } from './help.js';
import { Misuse } from './misuse.js';
import { count, lines, paintFor, plural, summary } from './report.js';

const OPTIONS = {
  dialect: { type: 'string', short: 'd' }, out: { type: 'string', short: 'o' }, json: { type: 'boolean' },
  'dangling-calls': { type: 'string' }, 'dangling-text': { type: 'string' },
  help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' },
};
const COMMANDS = { check: [check, ['dialect', 'json']], repair: [mend, ['dialect', 'json', 'out', 'dangling-calls', 'dangling-text']] };

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

/** The dialect that was said, or that the shape says. */
function dialectOf(given, conversation, say) {
  const guess = guessDialect(conversation);
  if (given !== undefined) return { dialect: known(given), why: null, guess };
  if (!guess) {
    throw new Misuse(`the dialect of ${conversation.name} does not show in its shape: say --dialect ${oneOf(Object.keys(DIALECTS))}`);
  }
  say(`read as ${guess.dialect}, because ${guess.why}; --dialect says otherwise`);
  return { ...guess, guess };
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

/** A repaired body in the form in which the conversation came. */
function unframed(body, framed, conversation, dialect, say) {
  if (body === framed.text) return conversation.given;
  if (conversation.form === 'body') return body;
  const head = `{"${DIALECTS[dialect]}":`;
  if (!body.startsWith(head) || Object.keys(JSON.parse(body)).length !== 1) {
    say('what is said by the system stands beside the messages in this dialect: written as a whole body');
    return `${body}\n`;
  }
  const array = body.slice(head.length, -1);
  if (conversation.form === 'list') return `${array}\n`;
  return itemsOf(array).map((item) => `${item.replace(/[\r\n]+/g, ' ')}\n`).join('');
}

function told(findings, framed, conversation, paint) {
  const roleOf = (n) => framed.items[n]?.role ?? framed.items[n]?.type;
  const placeOf = (n) => (conversation.lines?.[n] ? `, line ${conversation.lines[n]}` : '');
  return lines(findings, { list: framed.list, roleOf, placeOf }, paint);
}

const placed = (findings, framed) => findings.map((finding) => ('path' in finding ? { ...finding, path: framed.own(finding.path) } : finding));

function asJson({ name, form }, { dialect, why }, findings, more = {}) {
  const { errors, warnings } = count(findings);
  return `${JSON.stringify({ file: name, form, dialect, guessed: why, ...more, errors, warnings, findings }, null, 2)}\n`;
}

async function check(file, values, { stdin, stdout, stderr, env }) {
  const conversation = await readConversation(file, stdin);
  const note = (text) => stderr.write(`rethread: ${text}\n`);
  const chosen = dialectOf(values.dialect, conversation, values.json ? () => {} : note);
  const framed = frame(conversation, chosen.dialect);
  const findings = placed(validate(framed.text, chosen.dialect), framed);
  const { errors } = count(findings);
  if (values.json) {
    stdout.write(asJson(conversation, chosen, findings, { ok: errors === 0 }));
  } else {
    const paint = paintFor(stdout, env);
    const title = `${conversation.name}: ${chosen.dialect}, ${plural(framed.items.length, 'message')}, ${summary(findings)}`;
    stdout.write(`${[paint('bold', title), ...told(findings, framed, conversation, paint)].join('\n')}\n`);
    const { guess } = chosen;
    if (errors && guess && guess.dialect !== chosen.dialect) note(`it looks like ${guess.dialect}: ${guess.why}`);
  }
  return errors ? 1 : 0;
}

/** What is told of a body that was made: on standard error, so that standard output holds the body alone. */
function tell(values, findings, framed, conversation, chosen, stderr, env) {
  if (values.json) {
    stderr.write(asJson(conversation, chosen, findings));
    return;
  }
  const paint = paintFor(stderr, env);
  const text = [paint('bold', `${conversation.name}: ${chosen.dialect}, ${summary(findings)}`), ...told(findings, framed, conversation, paint)];
  stderr.write(`${text.join('\n')}\n`);
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
  const chosen = dialectOf(values.dialect, conversation, say);
  const framed = frame(conversation, chosen.dialect);
  const { body, report } = repair(framed.text, chosen.dialect, options);
  tell(values, placed(report, framed), framed, conversation, chosen, stderr, env);
  write(unframed(body, framed, conversation, chosen.dialect, say), values.out, stdout);
  return count(validate(body, chosen.dialect)).errors ? 1 : 0;
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
  if (file === undefined) throw new Misuse(`${name} wants a file, or "-" for standard input`);
  if (rest.length) throw new Misuse(`${name} takes one file, and ${rest.length + 1} were given`);
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
