// Changes of other processes, by Redis's PUBLISH and SUBSCRIBE. The script of a commit publishes the notice of an append.

/**
 * A change feed. Its listening connection is a duplicate of the client, which connects and subscribes again by itself.
 *
 * @param {any} client of ioredis or redis
 * @param {string} channel
 * @param {(notice: string) => Promise<any>} publish
 */
export const changesOf = (client, channel, publish) => ({
  async subscribe(listener) {
    const subscriber = client.duplicate();
    const isIoredis = typeof client.callBuffer === 'function';
    const end = () => { if (isIoredis || !subscriber.destroy) subscriber.disconnect(); else subscriber.destroy(); };
    // A connection that is lost is replaced: 'ready' follows.
    subscriber.on('error', () => {});
    const hear = (notice) => listener(notice);
    const listen = () => (isIoredis ? subscriber.subscribe(channel) : subscriber.subscribe(channel, hear));
    try {
      if (isIoredis) subscriber.on('message', (_, notice) => hear(notice));
      else await subscriber.connect();
      await listen();
    } catch (error) {
      end();
      throw error;
    }
    // Nobody knows what happened while the connection was lost, until it listens again.
    subscriber.on('ready', () => listen().then(() => listener(null), () => {}));
    return end;
  },
  publish,
});
