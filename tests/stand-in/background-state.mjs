// Background responses of OpenAI's Responses: the service works on them when nobody reads, and a client picks them up.

import { refuse } from './openai-errors.mjs';
import { refusalOf } from './rules-openai-responses.mjs';
import { background, whole } from './wire-openai-responses.mjs';

const RESPONSE = /^(?:openai\/)?v1\/responses\/([^/]+?)(\/cancel)?$/;

/** How long a response is streamed, and how long it is kept. */
const STREAMED_MINUTES = 5;
const KEPT_MINUTES = 30 * 24 * 60;

export const isResponsePath = (path) => RESPONSE.test(path ?? '');

/** A response on which the service works. */
class Work {
  constructor(answer, isStreamed, begun) {
    this.answer = answer;
    /** The time, in minutes. */
    this.begun = begun;
    this.isStreamed = isStreamed;
    this.status = 'queued';
    /** The bytes of the events so far. */
    this.events = [];
    this.isEnded = false;
    this.isTooOld = false;
    this.waiting = new Set();
  }

  add(bytes) {
    this.events.push(bytes);
    this.wake();
  }

  end(status) {
    this.status = status;
    this.isEnded = true;
    this.wake();
  }

  wake() {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }

  /** Resolves when there is more, or when a reader has left. */
  more() {
    return new Promise((resolve) => {
      this.waiting.add(resolve);
    });
  }

  /** The response as it is now. */
  get response() {
    const isWhole = this.isEnded && this.status !== 'cancelled';
    return isWhole ? whole(this.answer) : background(this.answer, this.status);
  }
}

/** The background responses of one lane. */
export class BackgroundState {
  constructor() {
    this.works = new Map();
    this.timers = new Set();
    this.minutes = 0;
  }

  /** Throws a refusal for a request that asks for a background response that is not stored. */
  check(body) {
    if (body?.background === true && body.store === false)
      refuse("Background mode requires 'store' to be true.", 'background');
  }

  /** Begins to work on a response: an event each `delayMs`, whoever reads it. `whenDone`: at its end. */
  begin({ answer, frames, isStreamed, delayMs, whenDone }) {
    const work = new Work(answer, isStreamed, this.minutes);
    this.works.set(answer.id, work);
    const step = () => {
      if (work.isEnded) return;
      const { done, value } = frames.next();
      if (done) {
        whenDone();
        work.end(whole(answer).status);
        return;
      }
      work.add(value.bytes);
      if (work.events.length > 1) work.status = 'in_progress';
      const timer = setTimeout(() => {
        this.timers.delete(timer);
        step();
      }, delayMs);
      this.timers.add(timer);
    };
    step();
    return work;
  }

  /** {status, json} or {work, after} for a request about a response: what it is, or which stream of it. */
  answer({ method, path, query }) {
    const [, id, isCancel] = RESPONSE.exec(path);
    const work = this.works.get(id);
    const after = query.get('starting_after');
    const refused = refusalOf(() => {
      if (!work) refuse(`Response with id '${id}' not found.`, null);
      if (query.get('stream') !== 'true') {
        if (after !== null) refuse("'starting_after' needs 'stream' to be true.", 'starting_after');
        return;
      }
      if (!work.isStreamed) refuse('This response was not created with streaming.', 'stream');
      if (work.isTooOld)
        refuse('This response can no longer be streamed because it is more than 5 minutes old', 'stream');
    });
    if (refused) return { status: work ? 400 : 404, json: refused.error };
    if (method === 'POST' && isCancel) {
      if (!work.isEnded) work.end('cancelled');
      return { status: 200, json: work.response };
    }
    if (method !== 'GET' || isCancel) return { status: 405, json: { error: { message: `Not allowed to ${method}.` } } };
    if (query.get('stream') === 'true') return { work, after: after === null ? -1 : Number(after) };
    return { status: 200, json: work.response };
  }

  /** Advances the clock: a response is streamed for 5 minutes, and kept for 30 days. */
  advance(minutes) {
    this.minutes += minutes;
    for (const [id, work] of this.works) {
      const age = this.minutes - work.begun;
      work.isTooOld = age > STREAMED_MINUTES;
      if (age <= KEPT_MINUTES) continue;
      work.end('cancelled');
      this.works.delete(id);
    }
  }

  dispose() {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    for (const work of this.works.values()) work.end('cancelled');
    this.works.clear();
  }
}

/** Sends the events of a response after the one of that number, as they come. `cut`: the number of events after which
 *  the connection breaks. */
export async function follow({ res, work, after, cut = Infinity, signal }) {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  res.flushHeaders();
  signal.addEventListener('abort', () => work.wake(), { once: true });
  let next = after + 1;
  for (let sent = 0; !signal.aborted; ) {
    if (sent >= cut) {
      await new Promise((resolve) => {
        res.write('', resolve);
      });
      res.socket?.destroy();
      return 'cut';
    }
    if (next < work.events.length) {
      // A write that is never done, since the reader has left, holds nothing up.
      res.write(work.events[next]);
      next += 1;
      sent += 1;
    } else if (work.isEnded) {
      res.end();
      return 'complete';
    } else await work.more();
  }
  return 'client-closed';
}
