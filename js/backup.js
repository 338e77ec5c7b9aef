// The streams of `Rethread.backup` and `Rethread.restoreBackup`.

import { RethreadError } from './error.js';
import { isBytes } from './untrusted-value.js';

/** The parts of a backup. Each is read when it is asked for. */
export function backupStream(backup) {
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const part = await backup.promise((object) => object.next());
          if (part !== undefined) {
            controller.enqueue(part);
            return;
          }
        } catch (error) {
          backup.free();
          throw error;
        }
        backup.free();
        controller.close();
      },
      cancel() {
        backup.free();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Restores a backup from its text or bytes, and resolves to what was restored. */
export async function restoreFrom(backup, restore) {
  try {
    for await (const text of wholeCharacters(chunksOf(backup))) await restore.promise((object) => object.push(text));
    return await restore.promise((object) => object.end());
  } finally {
    restore.free();
  }
}

/** Not every browser can iterate over a stream. */
async function* chunksOf(backup) {
  if (typeof backup.getReader !== 'function') {
    yield* backup;
    return;
  }
  const reader = backup.getReader();
  let hasEnded = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      hasEnded = done;
      if (done) return;
      yield value;
    }
  } finally {
    // Whoever writes need not go on after an error.
    if (!hasEnded) await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

/** The text of chunks that may end within a character: in its bytes, or between its two code units. */
async function* wholeCharacters(chunks) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let half = '';
  for await (const chunk of chunks) {
    const text = half + textOf(chunk, decoder);
    half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : '';
    yield half ? text.slice(0, -1) : text;
  }
  yield half + textOf(new Uint8Array(), decoder, true);
}

function textOf(chunk, decoder, isLast = false) {
  if (typeof chunk === 'string') return chunk;
  if (!isBytes(chunk)) throw new RethreadError('invalid_input', 'a chunk of the backup is neither text nor bytes');
  try {
    return decoder.decode(chunk, { stream: !isLast });
  } catch (cause) {
    const sentence = 'the backup is not in UTF-8; pass the bytes as they were written';
    throw new RethreadError('invalid_input', sentence, {}, { cause });
  }
}
