// Changes of other processes, by Redis's PUBLISH and SUBSCRIBE. The script of a commit publishes the notice of an
// append.

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
    const end = () => {
      if (isIoredis || !subscriber.destroy) subscriber.disconnect();
      else subscriber.destroy();
    };
    // The client replaces a lost connection; 'ready' follows.
    subscriber.on('error', () => {});
    const onNotice = (notice) => listener(notice);
    const listen = () => (isIoredis ? subscriber.subscribe(channel) : subscriber.subscribe(channel, onNotice));
    try {
      if (isIoredis) subscriber.on('message', (_, notice) => onNotice(notice));
      else await subscriber.connect();
      await listen();
    } catch (error) {
      end();
      throw error;
    }
    // Notices may have been missed while the connection was lost.
    subscriber.on('ready', () =>
      listen().then(
        () => listener(null),
        () => {},
      ),
    );
    return end;
  },
  publish,
});
