// The marks that `once` stores beside calls: that the tool of a call begins, or that a start did not run it after all.

import { recordOf, recordPart } from '../message-record.js';

/** The name of the part with the mark. */
const RECORD = 'once';

/** `arguments`: those that the tool got, if the call has others. `withdrawn`: the start that did not run the tool.
 *  `was`: the invocations that the call had before its message was written anew; a mark may say that alone.
 *  @typedef {{ invocation: string, start?: string, withdrawn?: string, arguments?: any, was?: string[] }} CallMark */

/** @returns {CallMark | undefined} */
export const markOf = (message) => recordOf(RECORD, message);

/** Returns the part for a message with these other parts. @param {CallMark} mark @param {any[]} parts */
export const markPart = (mark, parts) => recordPart(RECORD, mark, parts);

/** Returns the message that has the mark alone. @param {CallMark} mark */
export const markMessage = (mark) => ({ role: 'assistant', parts: [markPart(mark, [])] });

/** Returns an id for a start, or for an invocation. */
export function newId() {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(12)));
  return `once_${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** The invocation that a call has by now: its message may have been written anew.
 *  @param {(CallMark | undefined)[]} marks of all messages, oldest first @param {string} invocation */
export const currentInvocation = (marks, invocation) =>
  marks.findLast((mark) => mark?.was?.includes(invocation))?.invocation ?? invocation;

/** The invocations that a call has, or had before its message was written anew.
 *  @param {(CallMark | undefined)[]} marks @param {string} invocation @returns {string[]} */
export const lineage = (marks, invocation) => [
  ...new Set([invocation, ...marks.flatMap((mark) => (mark?.invocation === invocation ? (mark.was ?? []) : []))]),
];

/** The marks of starts whose tools may have run. @param {CallMark[]} marks @returns {CallMark[]} */
export function startMarks(marks) {
  const withdrawn = new Set(marks.map((mark) => mark.withdrawn));
  return marks.filter(({ start }) => start !== undefined && !withdrawn.has(start));
}

/** The marks of a call whose message is written anew, with another invocation.
 *  @param {CallMark[]} marks @param {string} invocation
 *  @param {(mark: CallMark) => any} argumentsOf Those that the tool got, undefined if the call itself has them. */
export function marksAnew(marks, invocation, argumentsOf) {
  return marks.map((mark) => {
    const { arguments: _, was = [], ...rest } = mark;
    const args = mark.start === undefined ? undefined : argumentsOf(mark);
    return { ...rest, ...(args !== undefined && { arguments: args }), invocation, was: [...was, mark.invocation] };
  });
}
