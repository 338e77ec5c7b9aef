// What is stored of a chat, record by record: read from its export as JSON Lines.

/** Bytes that base64 text stands for. */
const bytesOf = (base64) => Math.floor((base64.length * 3) / 4) - (/=*$/.exec(base64)[0].length || 0);

/** The records of an export: `{ table, bytes, line }`, with the head as one of the table "head". */
export function storedRecords(lines) {
  return lines
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text))
    .filter(({ end }) => !end)
    .map((line) =>
      line.head === undefined
        ? { table: line.table, bytes: bytesOf(line.value ?? ''), line }
        : { table: 'head', bytes: bytesOf(line.head), line },
    );
}

/** The records of a chat; none if nothing is stored of it yet. */
export async function readRecords(chat) {
  if (!(await chat.isStored())) return [];
  return storedRecords(await chat.exportLines());
}
