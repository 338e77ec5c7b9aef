// One chat: its HTTP API and its answers. The same file runs on Node and in a Durable Object; it knows neither the server nor the store.

import { drive } from 'rethread/host';
import { toolsFor } from './tools.js';

const OPENAI = 'https://api.openai.com/v1/chat/completions';

export class Chat {
  /** For a host that sleeps: a run is released before a longer pause than `longestPauseMs`. `onPause` gets the time when to resume it. */
  constructor(session, env, { longestPauseMs, onPause } = {}) {
    this.session = session;
    const provider = { dialect: 'openai-chat', url: env.MODEL_URL || OPENAI, params: { model: env.MODEL || 'gpt-4.1-mini' }, stream: true };
    this.request = { provider, tools: toolsFor(env) };
    // Passed to `fetch` only. `request` is stored with a run, so it must not contain the key.
    const driving = { headers: { authorization: `Bearer ${env.OPENAI_API_KEY}` }, longestPauseMs };
    this.drive = async (run) => { for await (const { type, at } of drive(run, driving)) if (type === 'retrying') await onPause?.(at); };
  }

  /** GET reads the stored messages, or watches the chat as an event stream. POST asks a question. */
  async fetch(request) {
    if (request.method === 'POST') return this.ask(request);
    await this.session.refresh(); // another process may have written
    const watches = request.headers.get('accept')?.includes('text/event-stream');
    // Whoever asks for an id that nobody wrote to gets nothing to keep.
    if (!watches && this.session.revision === 0 && (await this.session.pendingRuns()).length === 0) return new Response('not found', { status: 404 });
    if (!watches) return Response.json(await this.session.messages());
    return new Response(this.watch(), { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } });
  }

  async ask(request) {
    let text = '';
    // A body that is too long is cut, and is not JSON then.
    for await (const part of request.body?.pipeThrough(new TextDecoderStream()) ?? []) text = (text + part).slice(0, 20_000);
    // Otherwise a page of another site could send the request: browsers ask the server first only for this content type.
    const isJson = /^application\/json\s*(;|$)/i.test(request.headers.get('content-type') ?? '');
    const input = isJson && (await new Response(text).json().catch(() => null))?.question;
    if (typeof input !== 'string' || !input) return new Response('send a short `question` as JSON', { status: 400 });
    if (await this.resume()) return new Response('the last answer is not finished', { status: 409 });
    for (const { id, state } of await this.session.pendingRuns()) if (state === 'failed') await this.session.discard(id); // the next run replaces it
    const run = await this.session.run({ ...this.request, input });
    this.drive(run); // not awaited: clients that watch see its progress
    return Response.json({ run: run.id }, { status: 202 }); // question and answer survive a crash from here on
  }

  /** Resumes interrupted runs; no tool that has returned runs again. Resolves to a run that is active somewhere or waits for its next attempt. */
  async resume() {
    const isDue = ({ state, notBefore = 0 }) => state === 'interrupted' && notBefore <= Date.now();
    for (const { id } of (await this.session.pendingRuns()).filter(isDue)) this.drive(await this.session.resume(id, this.request));
    return (await this.session.pendingRuns()).find(({ state }) => state !== 'failed');
  }

  /** The chat as server-sent events: at each change the ids of all messages, and the messages that are new or have changed. */
  watch() {
    const view = this.session.view();
    let notify = () => {};
    let change = Promise.resolve();
    let sent = new Set();
    const unsubscribe = view.subscribe(() => notify());
    return new ReadableStream({
      async pull(controller) {
        await change;
        change = new Promise((resolve) => { notify = resolve; });
        const { messages, run } = view.getSnapshot();
        const changed = messages.filter((message) => !sent.has(message)); // an unchanged message is the same object
        sent = new Set(messages);
        const event = JSON.stringify({ ids: messages.map(({ id }) => id), changed, run });
        controller.enqueue(new TextEncoder().encode(`data: ${event}\n\n`));
      },
      cancel: unsubscribe,
    });
  }
}
