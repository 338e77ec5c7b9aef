// A session of rethread as the external store of assistant-ui: its tree of messages, and what its buttons do.

import { ExportedMessageRepository, useExternalStoreRuntime } from '@assistant-ui/react';
import { useMemo, useSyncExternalStore } from 'react';

/** `start(run)` drives a run, `onError` gets what fails outside of assistant-ui's own calls. */
export function useRethreadRuntime(session, { request, start, onError }) {
  const view = session.view({ notify: 'frame' });
  const { messages, run, loading, hasOlder } = useSyncExternalStore(view.subscribe, view.getSnapshot);
  const messageRepository = useMemo(() => treeOf(messages), [messages]);
  const ask = async (change) => start(await session.run({ ...request, ...change, whenBusy: 'queue' }));
  return useExternalStoreRuntime({
    messageRepository,
    isRunning: run?.status === 'running',
    isLoading: loading,
    hasEarlier: hasOlder,
    onLoadEarlier: async () => void (await view.older()),
    onNew: ({ content }) => ask({ input: textOf(content) }),
    onEdit: ({ sourceId, content }) => ask({ replace: sourceId, input: textOf(content) }),
    onReload: (question) => ask({ replace: question }),
    onCancel: async () => run?.cancel?.(),
    onDelete: async (id) => void (await session.deleteMessages([id])),
    onRespondToToolApproval: async ({ approvalId, approved, reason }) =>
      start(await (approved ? view.approve(approvalId, request) : view.reject(approvalId, reason, request))),
    // A branch was chosen: the first message that is not shown is its sibling.
    setMessages(chosen) {
      const other = chosen.find(({ id }) => !messages.some((message) => message.id === id));
      if (other) session.switchTo(other.id).catch(onError);
    },
  });
}

const textOf = (content) => content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The branch that is shown, and of each of its siblings the id: assistant-ui counts them, and shows none of them
 *  before it is chosen. */
function treeOf(messages) {
  const items = messages.flatMap((message, at) => {
    const parentId = messages[at - 1]?.id ?? null;
    return message.siblings.ids.map((id) => ({
      parentId,
      message: id === message.id ? messageOf(message) : { id, role: message.role, content: [] },
    }));
  });
  return ExportedMessageRepository.fromBranchableArray(items, { headId: messages.at(-1)?.id ?? null });
}

const STATUSES = {
  streaming: { type: 'running' },
  complete: { type: 'complete', reason: 'stop' },
  stopped: { type: 'incomplete', reason: 'cancelled' },
  truncated: { type: 'incomplete', reason: 'length' },
  failed: { type: 'incomplete', reason: 'error' },
};

function messageOf({ id, role, parts, status, createdAt }) {
  const content = parts.flatMap((part) => partOf(part) ?? []);
  const waits = parts.some(({ awaitingApproval }) => awaitingApproval);
  return {
    id,
    role: role === 'developer' ? 'system' : role,
    createdAt: new Date(createdAt),
    content,
    ...(role === 'assistant' && {
      status: waits ? { type: 'requires-action', reason: 'tool-calls' } : STATUSES[status],
    }),
  };
}

function partOf(part) {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, text: part.text };
    case 'refusal':
      return { type: 'text', text: part.text };
    case 'tool':
      return callOf(part);
    default:
      return null;
  }
}

function callOf({ call, awaitingApproval }) {
  return {
    type: 'tool-call',
    toolCallId: call.id,
    toolName: call.name,
    argsText: call.argumentsText ?? '',
    ...(call.result && { result: call.result.content, isError: call.result.isError }),
    ...(awaitingApproval && { approval: { id: call.id } }),
  };
}
