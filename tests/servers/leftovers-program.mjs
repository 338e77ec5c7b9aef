// Starts what the argument names, prints its process, and then waits until it is stopped.

import { Miniflare } from 'miniflare';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { workerdProcess } from './workerd-process.mjs';

const START = {
  PostgreSQL: async () => (await startPostgres()).pid(),
  Redis: async () => (await startRedis()).pid(),
  workerd: async () => {
    const worker = new Miniflare({ modules: true, script: 'export default { fetch: () => new Response("") };' });
    await worker.ready;
    return workerdProcess();
  },
};

console.log(await START[process.argv[2]]());
setInterval(() => {}, 1000);
