// A process that appends to a session, in the company of others: node writer.mjs <store> <place> <session> <writer>
// <count>

import { openDriver } from './drivers.mjs';
import { startTesting } from './testing.mjs';

const [store, place, session, writer, count] = process.argv.slice(2);
const testing = await startTesting();
const { driver, end } = await openDriver(store, place);
const conflicts = await testing.writeWithRetry(driver, session, Number(writer), Number(count));
console.log(conflicts);
await end();
