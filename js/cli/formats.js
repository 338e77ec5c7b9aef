// What the commands use of the wasm besides `rethread/formats`: parts of JSON texts as written, since parsing and
// serializing would change digits, duplicate keys and escapes; and the table of known errors.

import { Instance } from '../instance.js';
import '../entry/formats-node.js'; // loads the wasm
import { program } from '../formats-program.js';

const instance = Instance.now(program, 'run the command again');

/** The texts of the items of an array. */
export const itemTexts = (array) => instance.call(() => instance.exports.itemTexts(array));

/** The text of a member of an object, or undefined. */
export const memberText = (object, name) => instance.call(() => instance.exports.memberText(object, name));

/** The rule that an error of a provider is about, as `heal` reads it; undefined for another text. */
export const refusedRule = (answer, dialect) => instance.call(() => instance.exports.refusedRule(answer, dialect));
