// Results in another message than their call: those of model messages that were made messages of the page.

import { continuation } from '../marked-messages.js';
import { markWith } from '../marks.js';
import { checkedMessage, FORMAT } from './format.js';
import { callsOf, shownParts } from './read.js';
import { isCall, isResult, keptOfCall, neutralCall, resultOf, resultValue, withStored } from './tools.js';

const callIn = (parts, id) => parts.find((part) => isCall(part) && part.id === id);
const resultIn = (parts, id) =>
  parts.find((part) => isResult(part) && part.state !== 'streaming' && part.toolCallId === id);

/** The message that has the call of a result, and the place of the call in it; undefined if it takes no result. */
function openCall(id, earlier, entries) {
  const place = earlier.findLastIndex(({ parts }) => callIn(parts, id));
  const message = earlier[place];
  // Of two results of a call the first one counts.
  if (!message || earlier.slice(place + 1).some(({ parts }) => resultIn(parts, id))) return undefined;
  const own = checkedMessage(message);
  const call = callIn(own.parts, id);
  const entry = entries.get(own.id);
  if (entry) {
    const isOpen = callsOf(entry).some(({ callId, result }) => callId === id && !result);
    const at = shownParts(entry).find(({ part }) => isCall(part) && part.id === id)?.at;
    return isOpen && at !== undefined ? { own, call, at } : undefined;
  }
  const isOpen = neutralCall(call, own.parts) && !resultOf(call, own.parts);
  return isOpen ? { own, call, at: own.parts.indexOf(call) } : undefined;
}

/**
 * What `append` needs for the results of a message whose calls earlier messages have.
 *
 * @param {any} message
 * @param {any[]} earlier
 * @param {Map<string, import('../marked-entries.js').Entry>} entries
 * @returns {any[]}
 */
export function strayResults({ parts }, earlier, entries) {
  const strays = parts.filter((part) => part === resultIn(parts, part.toolCallId) && !callIn(parts, part.toolCallId));
  return strays.flatMap((part) => {
    const callId = part.toolCallId;
    const open = openCall(callId, earlier, entries);
    if (!open) return [];
    const result = { content: resultValue(part, open.call), isError: part.state === 'error' };
    // The call is shown as it is: its result has a part elsewhere.
    const kept = keptOfCall(open.call, withStored(open.own.parts, [{ callId, result }]));
    return [
      { role: 'tool', parts: [{ type: 'tool_result', callId, result: result.content, isError: result.isError }] },
      ...continuation(FORMAT, open.own, { changes: [markWith(FORMAT.name, { ...kept, at: open.at })] }),
    ];
  });
}
