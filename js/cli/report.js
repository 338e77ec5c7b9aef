// Findings as text: grouped by message, one line each.

const CODES = { error: '31', warning: '33', info: '36', bold: '1', dim: '2' };

/** Returns a function that colors text if the stream is a terminal and NO_COLOR is not set (no-color.org). */
export function paintFor(stream, env) {
  const isColored = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (name, text) => (isColored ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text);
}

/** Escapes control characters, which a terminal would interpret. */
export const escaped = (text) =>
  text.replace(
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

export const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

export function count(findings) {
  const of = (severity) => findings.filter((finding) => finding.severity === severity).length;
  return { errors: of('error'), warnings: of('warning'), notes: of('info') };
}

export function summary(findings) {
  const { errors, warnings, notes } = count(findings);
  const parts = [
    errors && plural(errors, 'error'),
    warnings && plural(warnings, 'warning'),
    notes && plural(notes, 'note'),
  ].filter(Boolean);
  return parts.length ? parts.join(', ') : 'nothing wrong';
}

/** The index of the message that a finding is about; null for the whole body. */
function numberOf(path, list) {
  const rest = list && path?.startsWith(`/${list}/`) ? path.slice(list.length + 1) : list ? '' : (path ?? '');
  const number = /^\/(\d+)(\/|$)/.exec(rest)?.[1];
  return number === undefined ? null : Number(number);
}

/** Returns the lines of a report. `list`: the member that contains the messages, null for a bare array; `roleOf(n)` and
 *  `placeOf(n)` describe message n. */
export function lines(findings, { list, roleOf, placeOf }, paint) {
  const groups = new Map();
  for (const finding of findings) {
    const number = numberOf(finding.path, list);
    groups.set(number, [...(groups.get(number) ?? []), finding]);
  }
  const width = Math.max(0, ...findings.map(({ code }) => code.length));
  const out = [];
  for (const number of [...groups.keys()].sort((a, b) => (a ?? -1) - (b ?? -1))) {
    const role = number === null ? null : roleOf(number);
    out.push(
      paint(
        'bold',
        escaped(number === null ? 'the whole body' : `message ${number}${role ? `, ${role}` : ''}${placeOf(number)}`),
      ),
    );
    for (const { severity, code, path, action, message } of groups.get(number)) {
      const done = action && action !== 'kept' ? ` (${action})` : '';
      const where = path ? `${paint('dim', escaped(path))}  ` : '';
      out.push(
        `  ${paint(severity, (severity === 'info' ? 'note' : severity).padEnd(7))}  ${code.padEnd(width)}  ${where}${escaped(message)}${done}`,
      );
    }
  }
  return out;
}
