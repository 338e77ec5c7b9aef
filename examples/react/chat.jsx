// One chat. Nothing here keeps messages: the view has them, those of an answer that grows and of other tabs, too.

import { useState } from 'react';
import { report, reporting } from './notices.jsx';
import { drivePageRun, request, useView } from './hooks.js';

export function Chat({ session }) {
  const [{ messages, queued, run, hasOlder, readError }, view] = useView(session);

  /** Asks a question. With `replace` it takes the place of that message; without `input` the question of that message is answered again. */
  async function ask(input, replace) {
    // Nothing is awaited before the run begins: another chat may be shown meanwhile, which disposes this session.
    const starting = session.run({ ...request, ...(input && { input }), ...(replace && { replace }), whenBusy: 'queue' });
    if (!session.title && input) session.update({ title: input.slice(0, 60) }).catch(report);
    drivePageRun(await starting);
  }

  const submit = reporting(async (form) => {
    const field = form.elements.question;
    const input = field.value.trim();
    if (!input) return;
    form.reset();
    try {
      await ask(input);
    } catch (error) {
      field.value ||= input; // not asked, and nothing else was written meanwhile
      throw error;
    }
  });
  const resume = reporting(async () => drivePageRun(await view.resume(request)));
  return (
    <main aria-label="Chat">
      {readError && <p role="alert">{readError.message}</p>}
      {hasOlder && <button type="button" onClick={reporting(() => view.older())}>Older messages</button>}
      {messages.map((message, at) => (
        <Message key={message.id} message={message} session={session} view={view} ask={ask} endsTurn={messages[at + 1]?.role !== 'assistant'} />
      ))}
      {queued.map(({ id, parts }) => <p key={id} className="waiting">{textOf(parts)} (waits)</p>)}
      <p role="status">
        {run?.status === 'running' && <>Answering … {run.cancel && <button type="button" onClick={reporting(() => run.cancel())}>Stop</button>}</>}
        {run?.status === 'failed' && `Failed: ${run.error.message} `}
        {['failed', 'interrupted'].includes(run?.status) && <>
          <button type="button" onClick={resume}>Continue</button>
          <button type="button" onClick={reporting(() => session.discard(run.id))}>Discard</button>
        </>}
      </p>
      <form onSubmit={submit}>
        <textarea name="question" aria-label="Question" rows={2} required />
        <button type="submit">Send</button>
      </form>
    </main>
  );
}

function Message({ message, session, view, ask, endsTurn }) {
  const { id, role, parts, status, saved } = message;
  const [isEdited, setEdited] = useState(false);
  const edit = reporting((form) => {
    setEdited(false);
    return ask(form.elements.text.value, id);
  });
  return (
    <article className={role} data-id={id}>
      {isEdited
        ? <form onSubmit={edit}><textarea name="text" aria-label="Edited question" defaultValue={textOf(parts)} required /><button type="submit">Ask</button></form>
        : parts.map((part, at) => <Part key={at} part={part} view={view} />)}
      {['stopped', 'failed', 'truncated'].includes(status) && <small>({status})</small>}
      {saved && <small>
        <Siblings session={session} {...message.siblings} />
        {role === 'user' && <button type="button" onClick={() => setEdited(!isEdited)}>Edit</button>}
        {role === 'assistant' && endsTurn && <button type="button" onClick={reporting(() => ask(undefined, id))}>Regenerate</button>}
        <button type="button" onClick={reporting(() => session.deleteMessages([id]))}>Delete</button>
      </small>}
    </article>
  );
}

/** "2 / 3": edits of a question, or answers to it. */
function Siblings({ session, ids, index }) {
  if (ids.length < 2) return null;
  const arrow = (label, to) => (
    <button type="button" aria-label={label} disabled={!ids[to]} onClick={reporting(() => session.switchTo(ids[to]))}>{to < index ? '‹' : '›'}</button>
  );
  return <>{arrow('Previous', index - 1)} {index + 1} / {ids.length} {arrow('Next', index + 1)}</>;
}

/** React escapes text: output of models and tools is not trusted. */
function Part({ part, view }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type !== 'tool') return null;
  const { id, name, argumentsText, status, result } = part.call;
  const decide = (decision) => reporting(async () => drivePageRun(await decision()));
  return (
    <p className="tool" data-status={status}>
      {name} {argumentsText} → {result ? JSON.stringify(result.content) : status}
      {part.awaitingApproval && <>
        <button type="button" onClick={decide(() => view.approve(id, request))}>Approve</button>
        <button type="button" onClick={decide(() => view.reject(id, 'The user does not want it.', request))}>Reject</button>
      </>}
    </p>
  );
}

const textOf = (parts) => parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
