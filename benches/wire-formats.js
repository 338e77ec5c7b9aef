// W4: repair and convert of a whole body, bytes in and bytes out, in Node, against `JSON.parse` and `JSON.stringify` of
// it.

import { race } from './stats.js';
import { PARAMS, encode, encoder, messagesOf } from './work.js';

/** The messages without every third result. */
export function broken(messages) {
  let at = 0;
  const isResult = (item) => item?.role === 'tool' || item?.type === 'tool_result';
  const keep = (item) => !isResult(item) || (at += 1) % 3 !== 0;
  return messages
    .filter(keep)
    .map((message) =>
      Array.isArray(message.content) ? { ...message, content: message.content.filter(keep) } : message,
    );
}

export async function w4(rethread, counts, turn) {
  const rows = [];
  const decoder = new TextDecoder();
  for (const dialect of Object.keys(PARAMS)) {
    const other = Object.keys(PARAMS).find((name) => name !== dialect);
    for (const count of counts) {
      const messages = messagesOf(dialect, count / turn);
      const good = encode({ ...PARAMS[dialect], messages });
      const bad = encode({ ...PARAMS[dialect], messages: broken(messages) });
      const { report } = rethread.repair(bad, dialect);
      if (!report.length) throw new Error('the broken body is not broken');
      if (rethread.validate(rethread.repair(bad, dialect).body, dialect).some(({ severity }) => severity === 'error'))
        throw new Error('the repaired body is broken');
      const times = await race(
        {
          validate: () => {
            rethread.validate(good, dialect);
          },
          repairGood: () => {
            rethread.repair(good, dialect);
          },
          repairBad: () => {
            rethread.repair(bad, dialect);
          },
          convert: () => {
            rethread.convert(good, dialect, other);
          },
          json: () => {
            encoder.encode(JSON.stringify(JSON.parse(decoder.decode(good))));
          },
        },
        { rounds: count > 1000 ? 7 : 20 },
      );
      rows.push({ dialect, count, bytes: good.length, badBytes: bad.length, times });
    }
  }
  return rows;
}
