// Tables of times, ratios and targets, as plain text.

export const ms = (value) =>
  value === undefined ? '-' : value < 0.1 ? value.toFixed(4) : value < 10 ? value.toFixed(2) : value.toFixed(1);
export const cell = (one) => (one ? `${ms(one.median)} / ${ms(one.min)}` : '-');
export const ratio = (one, other) =>
  one && other ? { median: one.median / other.median, min: one.min / other.min } : null;
const times = (value) => (value < 0.1 ? value.toFixed(3) : value < 10 ? value.toFixed(2) : value.toFixed(1));
export const ratioCell = (of) => (of ? `${times(of.median)} / ${times(of.min)}` : '-');

/** Compares a ratio with its target. Targets are printed, never asserted: a busy machine may miss what an idle one
 *  meets. */
export function verdict(of, most) {
  if (!of || most === undefined) return '';
  const met = of.median <= most;
  return `<= ${most}: ${met ? 'met' : of.min <= most ? 'not met (min: met)' : 'not met'}`;
}

export function table(title, heads, rows) {
  const all = [heads, ...rows.map((row) => row.map((value) => String(value ?? '')))];
  const widths = heads.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const line = (row) =>
    row
      .map((value, column) => (column ? value.padStart(widths[column]) : value.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  console.log(`\n${title}`);
  console.log(line(heads));
  console.log(widths.map((width) => '-'.repeat(width)).join('  '));
  for (const row of all.slice(1)) console.log(line(row));
}
