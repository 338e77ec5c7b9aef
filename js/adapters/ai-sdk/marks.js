// Marks: data parts that keep, beside the neutral parts of a stored message, what these have no member for. They are
// stored as all data parts, and never sent to a model. The value of a mark is one of:
//
//   { id, extra, metadata }    at the beginning of a message: the id and the members of the UI message that the stored
//                              message cannot have
//   { of: "m" }                at the beginning: the message continues the UI message "m"
//   { part }                   a part of the UI message that has no neutral form
//   { rest, without }          of the part before the mark: its further members, and those that it does not have
//   { at, part }               the part at this index of the UI message was replaced
//   { at, rest, without }      the call at this index has other members since
//   { starts: "call-1" }       the tool of this call of the message was started, and may have run
//   { at, joins, rest }        the text before the mark continues the text at this index

/** The name of the data parts. */
export const MARK = 'rethread/ai-sdk';

export const mark = (value) => ({ type: 'data', name: MARK, value });

/** The value of a mark; undefined for any other part. */
export const markOf = (part) => (part.type === 'data' && part.name === MARK ? part.value : undefined);
