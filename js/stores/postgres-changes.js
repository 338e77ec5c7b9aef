// Changes of other processes, by PostgreSQL's LISTEN and NOTIFY. The engine's statements notify, in the transaction of
// an append.

/** The channel of a schema, as the engine's statements name it. */
const CHANNEL = { sql: "SELECT 'rethread_' || md5(current_schema()) AS channel", params: [] };
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;

/**
 * Listens on one connection, and on a new one after it is lost.
 *
 * @typedef {object} Connections
 * @property {() => Promise<any>} connect acquires a connection
 * @property {(client: any, error?: Error) => void} release returns it
 * @property {(client: any, statements: any[]) => Promise<any[][]>} transaction runs statements in the schema of the
 *   store
 */
export class ChangeListener {
  #connections;
  #listener;
  /** @type {any} */
  #client = null;
  #channel = '';
  #retry;
  #isEnded = false;

  /**
   * @param {Connections} connections
   * @param {(notice: string | null) => void} listener
   */
  constructor(connections, listener) {
    this.#connections = connections;
    this.#listener = listener;
  }

  async start() {
    const client = await this.#connections.connect();
    this.#attach(client);
    try {
      [[{ channel: this.#channel }]] = await this.#connections.transaction(client, [CHANNEL]);
      await this.#connections.transaction(client, [{ sql: `LISTEN ${this.#channel}`, params: [] }]);
    } catch (error) {
      this.#detach(client);
      this.#connections.release(client, error);
      throw error;
    }
    this.#client = client;
    if (this.#isEnded) await this.end();
  }

  async end() {
    this.#isEnded = true;
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    this.#detach(client);
    try {
      await this.#connections.transaction(client, [{ sql: `UNLISTEN ${this.#channel}`, params: [] }]);
      this.#connections.release(client);
    } catch (error) {
      this.#connections.release(client, error);
    }
  }

  #attach(client) {
    client.on('notification', this.#onNotification);
    client.on('error', this.#onLoss);
    client.on('end', this.#onLoss);
  }

  #detach(client) {
    client.off('notification', this.#onNotification);
    client.off('error', this.#onLoss);
    client.off('end', this.#onLoss);
  }

  #onNotification = ({ channel, payload }) => {
    if (channel === this.#channel) this.#listener(payload);
  };

  #onLoss = (error) => {
    const client = this.#client;
    if (client === null) return;
    this.#client = null;
    this.#detach(client);
    client.on('error', () => {}); // the connection is lost already
    this.#connections.release(client, error ?? new Error('the connection ended'));
    this.#startAgain(FIRST_RETRY_MS);
  };

  #startAgain(wait) {
    if (this.#isEnded) return;
    this.#retry = setTimeout(() => {
      // Notices may have been missed meanwhile.
      this.start().then(
        () => this.#listener(null),
        () => this.#startAgain(Math.min(wait * 2, MAX_RETRY_MS)),
      );
    }, wait);
    this.#retry.unref?.();
  }
}
