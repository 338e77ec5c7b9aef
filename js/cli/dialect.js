// Recognizes the dialect of a conversation by its shape.

import { CONVERSATION_MEMBERS } from '../dialects.js';
import { MARKS } from './marks.js';

/**
 * What the conversations of a dialect have and those of others do not; each member may be absent.
 *
 * @typedef {object} Marks
 * @property {string} [family] the dialect that it is a variant of
 * @property {string[]} [partMembers]
 * @property {string[]} [blockMembers]
 * @property {string[]} [itemTypes]
 * @property {string} [flag]
 * @property {string} [list]
 * @property {Record<string, string | null>} [roles]
 * @property {string[]} [blockWithMember]
 * @property {string} [listInBlock]
 * @property {RegExp} [blockTypes]
 * @property {string} [blockWord]
 * @property {string} [bodyMember]
 * @property {string[]} [besideMember]
 * @property {string[]} [withoutMembers]
 * @property {string} [besideMessages]
 * @property {string} [toolMember]
 * @property {RegExp} [models]
 * @property {RegExp} [callIds]
 * @property {string} [callIdWords]
 */

const LISTS = [...new Set(Object.values(CONVERSATION_MEMBERS))];

const array = (value) => (Array.isArray(value) ? value : []);
const has = (value, key) => typeof value === 'object' && value !== null && Object.hasOwn(value, key);
const a = (word) => `${/^[aeiou]/.test(word) ? 'an' : 'a'} \`${word}\``;

/** Sentences about a message without its blocks, the most telling first. Each returns undefined for a message without
 *  the mark. */
const OF_MESSAGE = [
  (message, { partMembers }) => {
    // Parts with a `type` belong to messages of an SDK.
    const part =
      partMembers &&
      [message?.parts].flat().find((one) => has(one, 'type') === false && partMembers.some((key) => has(one, key)));
    return part && `a part has \`${partMembers.find((key) => has(part, key))}\` and no type`;
  },
  (message, { itemTypes }) =>
    itemTypes?.includes(message?.type) ? `an item is of type \`${message.type}\`` : undefined,
  (message, { flag }) => (flag && message?.[flag] === true ? `a message has \`${flag}\`` : undefined),
  (message, { list }) => (list && array(message?.[list]).length ? `a message has \`${list}\`` : undefined),
  (message, { roles }) => {
    const member = has(roles, message?.role) ? roles[message.role] : undefined;
    return member === null || (member && has(message, member))
      ? `a message has the role \`${message.role}\``
      : undefined;
  },
];

/** Sentences about a block. */
const OF_BLOCK = [
  (block, { blockMembers }) => {
    const member = has(block, 'type') ? undefined : blockMembers?.find((key) => has(block, key));
    return member && `a block has \`${member}\` and no type`;
  },
  (block, { listInBlock }) =>
    listInBlock && block.type === listInBlock && Array.isArray(block[listInBlock])
      ? `a message has \`${listInBlock}\` with parts`
      : undefined,
  (block, { blockWithMember: [type, member] = [], blockWord }) =>
    type && block.type === type && block[member] ? `a message has ${a(type)} ${blockWord}` : undefined,
  (block, { blockTypes, blockWord }) =>
    blockTypes?.test(block.type) ? `a message has ${a(block.type)} ${blockWord}` : undefined,
];

/** Returns the first dialect for which one of the sentences is true, as [dialect, sentence], or undefined. */
function firstOf(sentences, value) {
  for (const sentence of sentences) {
    for (const [dialect, marks] of Object.entries(MARKS)) {
      const why = sentence(value, marks);
      if (why) return [dialect, why];
    }
  }
  return undefined;
}

/** Returns the dialect that a message indicates and the reason, as [dialect, sentence], or undefined. */
function evidenceOf(message) {
  const found = firstOf(OF_MESSAGE, message);
  if (found) return found;
  const blocks = array(message?.content).filter((block) => typeof block === 'object');
  for (const block of blocks) {
    const ofBlock = firstOf(OF_BLOCK, block);
    if (ofBlock) return ofBlock;
    // The blocks of some SDKs look like those of a dialect and have no type.
    if (!has(block, 'type')) return ['other', ''];
  }
  return undefined;
}

/** Returns what a body indicates beside its messages, as [dialect, sentence, member] of each mark. The member is given
 *  if several dialects have it. */
function evidenceOfBody(body) {
  const ofDialect = ([dialect, marks]) => {
    const { bodyMember, besideMember, withoutMembers, besideMessages, toolMember, models } = marks;
    const hasOneOf = (members) => members.some((member) => has(body, member));
    const hasMember = bodyMember && has(body, bodyMember) && hasOneOf(besideMember ?? [bodyMember]);
    const hasMessages = has(body, 'messages');
    const hasTool = toolMember && array(body.tools).some((tool) => has(tool, toolMember));
    return [
      hasMember && !hasOneOf(withoutMembers ?? []) && `it has \`${bodyMember}\``,
      besideMessages && hasMessages && has(body, besideMessages) && `it has \`${besideMessages}\` beside the messages`,
      hasTool && hasMessages && `its tools have ${a(toolMember)}`,
      hasMessages && models?.test(body.model) && `its model is ${body.model}`,
    ]
      .filter(Boolean)
      .map((why) => [
        dialect,
        why,
        ...(why === `it has \`${besideMessages}\` beside the messages` ? [besideMessages] : []),
      ]);
  };
  return Object.entries(MARKS).flatMap(ofDialect);
}

/** Returns {dialect, why}, or null if the evidence is missing or contradictory. */
export function guessDialect({ value, items }) {
  const body = items || typeof value !== 'object' ? null : value;
  const list =
    items ?? array(LISTS.map((member) => body?.[member]).find((member) => member !== undefined && member !== null));
  const evidence = [...list.map(evidenceOf).filter(Boolean), ...(body ? evidenceOfBody(body) : [])];
  // A member that several dialects have indicates the one that other marks indicate, otherwise the first.
  const isDecided = ([dialect, , member], at) =>
    member !== undefined &&
    evidence.some(
      ([other, , own], index) =>
        other !== dialect && MARKS[other]?.besideMessages === member && (own === undefined || index < at),
    );
  // A variant has the marks of its family and further ones.
  const found = evidence
    .filter((entry, at) => !isDecided(entry, at))
    .filter(([dialect]) => !evidence.some(([other]) => MARKS[other]?.family === dialect));
  const dialects = new Set(found.map(([dialect]) => dialect));
  if (dialects.size !== 1 || dialects.has('other')) return null;
  const [dialect, why] = found[0];
  const ids = list.flatMap((message) => array(message?.[MARKS[dialect].list ?? '']).map((call) => call?.id));
  const variant = Object.entries(MARKS).find(
    ([, { family, callIds }]) => family === dialect && ids.length && ids.every((id) => callIds?.test(id)),
  );
  return variant ? { dialect: variant[0], why: `${why}, with ${variant[1].callIdWords}` } : { dialect, why };
}
