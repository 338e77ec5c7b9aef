// Chats as files: JSON Lines, which a person can read, or the opaque form.

/** Offers a file for download. */
export function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A file name of a title: what is no letter or digit of any script becomes a dash. */
export const fileNameOf = (title) =>
  (title ?? '')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60) || 'chat';

/** Reads a file that was downloaded here: `{ name, lines }` or `{ name, bytes }`. */
export async function readChatFile(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] !== '{'.charCodeAt(0)) return { name: file.name, bytes };
  return { name: file.name, lines: new TextDecoder().decode(bytes) };
}

const REASONS = {
  invalid_input: (error) =>
    error.details?.line
      ? `Line ${error.details.line} of it was changed or cut off.`
      : 'It is damaged or cut off, or no file of a chat.',
  unsupported_version: () => 'Another version of rethread wrote it.',
  too_large: () => 'It is too large.',
  quota_exceeded: () => 'There is no space left in this browser.',
};

/** Why a file could not be restored, in words. */
export function restoreFailure(name, error) {
  const reason = Object.hasOwn(REASONS, error?.code) ? REASONS[error.code](error) : '';
  const message = error?.message ?? String(error);
  return `"${name}" was not restored. ${reason} Nothing was stored. (${message})`.replace(/ +/g, ' ');
}

/** Stores a chat that was read from a file, and returns `{ session, isCopy }`: a chat that is here already is stored
 *  beside it. */
export async function restoreChat(db, { name, lines, bytes }, newId) {
  const store = (options) => (lines === undefined ? db.restore(bytes, options) : db.importSession(lines, options));
  let isCopy = false;
  try {
    const session = await store().catch((error) => {
      if (error?.code !== 'conflict') throw error;
      isCopy = true;
      return store({ id: newId() });
    });
    return { session, isCopy };
  } catch (error) {
    throw new Error(restoreFailure(name, error), { cause: error });
  }
}
