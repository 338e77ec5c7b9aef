// LangGraph for the tests of docs/sent-twice.md, from the folder LANGGRAPH, and a checkpointer that a file keeps.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export async function langGraph() {
  const load = createRequire(path.join(process.env.LANGGRAPH, 'index.js'));
  const names = ['langgraph', 'langgraph/prebuilt', 'core/tools', 'core/messages'];
  return Object.assign({}, ...names.map((name) => load(`@langchain/${name}`)));
}

/** A `MemorySaver` whose state is in the file after each of its writes. */
export function fileCheckpointer({ MemorySaver }, file) {
  const bytes = (_, value) => (value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString('base64') } : value);
  const revived = (_, value) =>
    typeof value?.$bytes === 'string' ? new Uint8Array(Buffer.from(value.$bytes, 'base64')) : value;
  class FileSaver extends MemorySaver {
    constructor() {
      super();
      if (existsSync(file)) Object.assign(this, JSON.parse(readFileSync(file, 'utf8'), revived));
    }

    #save(done) {
      const { storage, writes } = this;
      writeFileSync(`${file}.new`, JSON.stringify({ storage, writes }, bytes));
      renameSync(`${file}.new`, file);
      return done;
    }

    async put(...args) {
      return this.#save(await super.put(...args));
    }

    async putWrites(...args) {
      return this.#save(await super.putWrites(...args));
    }
  }
  return new FileSaver();
}
