// `useChat` of `@ai-sdk/react` with a server of its own: nothing of rethread is on the page.

import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

const id = 'chat';
const transport = new DefaultChatTransport({ api: '/api/chat' });

const Part = ({ part }) => {
  if (part.type === 'text') return <span className="part">{part.text}</span>;
  return part.toolCallId ? <span className="part">{`${part.toolCallId} ${part.state}`}</span> : null;
};

function Chat({ stored }) {
  const { messages, sendMessage, regenerate, stop, status, error } = useChat({
    id,
    messages: stored,
    transport,
    resume: true,
  });
  const [text, setText] = useState('');
  const ask = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText('');
  };
  const end = () => {
    stop();
    fetch(`/api/chat/${id}/stop`, { method: 'POST' });
  };
  return (
    <main data-status={status}>
      {messages.map((message) => (
        <article key={message.id} data-id={message.id} data-role={message.role}>
          {message.parts.map((part, at) => (
            <Part key={at} part={part} />
          ))}
        </article>
      ))}
      <form onSubmit={ask}>
        <input aria-label="Question" value={text} onChange={({ target }) => setText(target.value)} />
        <button type="submit">Send</button>
      </form>
      <button type="button" onClick={end}>
        Stop
      </button>
      <button type="button" onClick={() => regenerate()}>
        Regenerate
      </button>
      {error && <p role="alert">{error.message}</p>}
    </main>
  );
}

const stored = await (await fetch(`/messages/${id}`)).json();
createRoot(document.querySelector('#root')).render(
  <StrictMode>
    <Chat stored={stored} />
  </StrictMode>,
);
