// What of a page's messages is compared with what is stored.

const plain = (value) => JSON.parse(JSON.stringify(value));

/** Parts without the steps at the end that have nothing yet: a page may not show them. */
const begun = (parts) => parts.slice(0, parts.findLastIndex(({ type }) => type !== 'step-start') + 1);

/** Messages without what versions of `ai` write differently, and without what the end of a text is marked with. */
export const compared = (messages) =>
  plain(messages).map(({ id, role, metadata, parts }) => ({
    ...{ id, role, metadata: role === 'user' ? undefined : metadata },
    parts: begun(parts).map(
      ({ type, text, toolCallId, state, rawInput, input = rawInput, output, errorText, approval, data, url }) =>
        plain({
          type,
          text,
          data,
          url,
          ...(toolCallId ? { toolCallId, state, output, errorText, approval } : {}),
          ...(toolCallId && state !== 'input-streaming' ? { input } : {}),
        }),
    ),
  }));

/** Messages as they are sent: open calls before the last question are closed. */
export function closed(messages) {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const close = (part) => {
    const { state, approval, providerExecuted } = part;
    if (['input-available', 'approval-requested'].includes(state)) {
      const errorText = 'The call has no result: the conversation went on without it.';
      return { ...part, approval: undefined, state: 'output-error', errorText };
    }
    if (state !== 'approval-responded' || providerExecuted) return part;
    if (!approval.approved) return { ...part, state: 'output-denied' };
    return { ...part, state: 'output-error', errorText: 'The call was interrupted; it may or may not have run.' };
  };
  return messages.map((message, at) => (at < last ? { ...message, parts: message.parts.map(close) } : message));
}
