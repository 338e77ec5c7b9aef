// Marks: data parts that keep, beside the neutral parts of a stored message, what these have no member for. They are
// stored as all data parts, and never sent to a model. The value of a mark is one of:
//
//   { id, extra, metadata }    at the beginning of a message: the id and the members of the library's message that the
//                              stored message cannot have
//   { of: "m" }                at the beginning: the message continues the library's message "m"
//   { part }                   a part of the library that has no neutral form
//   { rest, without }          of the part before the mark: its further members, and those that it does not have
//   { at, part }               the part at this index of the library's message was replaced
//   { at, rest, without }      the part at this index has other members since
//   { starts: "call-1" }       the tool of this call of the message was started, and may have run
//   { durable: ["call-1"] }    these calls of the message are of tools that store that they start before they do
//   { at, joins, rest }        the text before the mark continues the text at this index
//   { at, takes, rest }        the part before the mark takes the place of the part at this index

/**
 * How the messages of a library are written.
 *
 * @typedef {object} MarkFormat
 * @property {string} name The name of its marks.
 * @property {(part: any, role: string, parts: any[]) => { neutral: any, kept?: any } | undefined} writtenPart
 *   The neutral form of a part, with the mark that it needs to come back as it is; undefined if it has none. `parts`:
 *   all parts of its message.
 * @property {(part: any, parts: any[]) => any} unwrittenPart The mark of a part without a neutral form.
 * @property {(part: any, neutral: any, before: { role: string, isAnswered: boolean, parts: any[] }) => boolean}
 *   beginsAnswer True if a part begins another answer of the model. `before`: what the one before it has; `isAnswered`:
 *   one of its calls has a result.
 * @property {(message: any) => any} ownMembers What stored messages have no member for, by the names of the mark.
 * @property {(message: any) => any} storedMembers The members of the stored message.
 * @property {(part: any, callId: string) => boolean} isBegunCall True for the part of a call whose input was arriving.
 */

export const markWith = (name, value) => ({ type: 'data', name, value });

/** The value of a mark; undefined for any other part. */
export const markValue = (name, part) => (part.type === 'data' && part.name === name ? part.value : undefined);
