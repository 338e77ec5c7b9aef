// A chat of assistant-ui's own components over a session in IndexedDB.

import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  BranchPickerPrimitive,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
} from '@assistant-ui/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { init, open } from 'rethread';
import { drive, isDriven } from 'rethread/host';
import { useRethreadRuntime } from './runtime.js';

const lane = new URLSearchParams(location.search).get('lane');
const noted = [];
const request = {
  provider: {
    dialect: 'openai-chat',
    url: `${location.origin}/lane/${lane}/v1/chat/completions`,
    params: { model: 'gpt-4.1-mini' },
    stream: true,
  },
  tools: {
    post_note: {
      parameters: { type: 'object', properties: { note: { type: 'string' } } },
      needsApproval: true,
      execute: ({ note }) => noted.push(note),
    },
  },
};

function start(run) {
  if (!isDriven(run)) drive(run, { onApproval: 'wait' }).result.catch(console.error);
}

const Branches = () => (
  <BranchPickerPrimitive.Root hideWhenSingleBranch>
    <BranchPickerPrimitive.Previous>Previous</BranchPickerPrimitive.Previous>
    <span className="place">
      <BranchPickerPrimitive.Number /> / <BranchPickerPrimitive.Count />
    </span>
    <BranchPickerPrimitive.Next>Next</BranchPickerPrimitive.Next>
  </BranchPickerPrimitive.Root>
);

const Call = ({ toolName, argsText, result, approval, respondToApproval }) => (
  <p className="call">
    {toolName} {argsText} {JSON.stringify(result ?? null)}
    {approval && result === undefined && (
      <button type="button" onClick={() => respondToApproval({ approved: true })}>
        Approve
      </button>
    )}
  </p>
);

const parts = { Text: ({ text }) => <p>{text}</p>, tools: { Override: Call } };

const UserMessage = () => (
  <MessagePrimitive.Root className="user">
    <MessagePrimitive.Parts components={parts} />
    <ActionBarPrimitive.Root>
      <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
    </ActionBarPrimitive.Root>
    <Branches />
  </MessagePrimitive.Root>
);

const EditComposer = () => (
  <ComposerPrimitive.Root className="edit">
    <ComposerPrimitive.Input aria-label="Edited question" />
    <ComposerPrimitive.Send>Ask</ComposerPrimitive.Send>
  </ComposerPrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root className="assistant">
    <MessagePrimitive.Parts components={parts} />
    <ActionBarPrimitive.Root>
      <ActionBarPrimitive.Reload>Regenerate</ActionBarPrimitive.Reload>
    </ActionBarPrimitive.Root>
    <Branches />
  </MessagePrimitive.Root>
);

function Chat({ session }) {
  const runtime = useRethreadRuntime(session, { request, start, onError: console.error });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, EditComposer, AssistantMessage }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Question" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

await init(new URL('/dist/rethread_bg.wasm', location.href));
const store = await open({ name: lane });
const session = await store.session('chat');
const { runs, failed } = await store.resumeAll(request);
runs.forEach(start);
failed.forEach(({ error }) => console.error(error));
Object.assign(globalThis, { session, noted });
createRoot(document.querySelector('#root')).render(
  <StrictMode>
    <Chat session={session} />
  </StrictMode>,
);
