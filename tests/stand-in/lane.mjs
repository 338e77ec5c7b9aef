// Everything one lane remembers: requests, script, tool entries, gates and holds. Tests that run side by side use a
// lane each.

import { BackgroundState } from './background-state.mjs';
import { ServiceState } from './service-state.mjs';
import { ThreadState } from './thread-state.mjs';

const PUBLIC_WAIT = ({ kind, name, phase, ordinal, callId, invocationId, n, piece }) => ({
  kind,
  name,
  phase,
  ordinal,
  callId,
  invocationId,
  n,
  piece,
});

export class Lane {
  constructor(name) {
    this.name = name;
    this.options = { delayMs: 15 };
    this.requests = [];
    this.accepted = 0;
    /** The requests about background responses, and after how many events the connection of each breaks. */
    this.fetched = [];
    this.cuts = [];
    this.service = new ServiceState(name);
    this.threads = new ThreadState();
    this.background = new BackgroundState();
    this.script = [];
    this.then = 'brain';
    this.tools = [];
    this.gates = new Set();
    this.holds = [];
    this.waiting = new Set();
    this.closers = new Set();
  }

  /** What the service at an address keeps; null if it keeps nothing. */
  stateOf({ dialect, vertex }) {
    if (dialect === 'openai-responses') return this.service;
    return dialect === 'anthropic' && !vertex ? this.threads : null;
  }

  /** The step for the next accepted request; null when the brain is to think. */
  nextStep() {
    if (this.script.length) return this.script.shift();
    if (this.then === 'error') return { status: 500, message: 'stand-in: the script is used up' };
    return null;
  }

  /** Resolves when let go, or when the client has gone away. */
  wait(entry, signal) {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter = { ...entry };
      const done = () => {
        this.waiting.delete(waiter);
        signal.removeEventListener('abort', done);
        resolve();
      };
      waiter.done = done;
      this.waiting.add(waiter);
      signal.addEventListener('abort', done);
    });
  }

  gate(name, { n, piece }, signal) {
    if (this.gates.has(name)) return Promise.resolve();
    return this.wait({ kind: 'gate', name, n, piece }, signal);
  }

  openGate(name) {
    this.gates.add(name);
    return this.#letGo((w) => w.kind === 'gate' && w.name === name);
  }

  /** Hangs when a hold was set for this point. `at` has kind, name, phase and the ordinal among its like. */
  holdPoint(at, signal) {
    const held = this.holds.some(
      (h) =>
        h.phase === at.phase &&
        (h.name === undefined || h.name === at.name) &&
        (h.callId === undefined || h.callId === at.callId) &&
        (h.ordinal === undefined || h.ordinal === at.ordinal),
    );
    return held ? this.wait(at, signal) : Promise.resolve();
  }

  hold({ name, phase, ordinal, callId }) {
    this.holds.push({ name, phase, ordinal, callId });
    return this.holds;
  }

  /** Takes away the holds that match and lets go what hangs there. What is left out matches all. */
  release({ name, phase, ordinal, callId } = {}) {
    const matches = (x) =>
      (phase === undefined || x.phase === phase) &&
      (name === undefined || x.name === undefined || x.name === name) &&
      (ordinal === undefined || x.ordinal === undefined || x.ordinal === ordinal) &&
      (callId === undefined || x.callId === undefined || x.callId === callId);
    this.holds = this.holds.filter((h) => !matches(h));
    return this.#letGo((w) => w.kind !== 'gate' && matches(w));
  }

  #letGo(match) {
    const hit = [...this.waiting].filter(match);
    for (const w of hit) w.done();
    return hit.length;
  }

  /** Counts one report of a tool run. The count is the server's, so a page that was killed cannot lose it. */
  toolEntry({ name, callId, invocationId, phase = 'start', arguments: args }) {
    const alike = (e) => e.name === name && e.phase === phase;
    const entry = {
      seq: this.tools.length + 1,
      name,
      callId,
      invocationId,
      phase,
      arguments: args,
      count: this.tools.filter(alike).length + 1,
      at: Date.now(),
    };
    entry.countForCall = this.tools.filter((e) => alike(e) && e.callId === callId).length + 1;
    this.tools.push(entry);
    return entry;
  }

  listWaiting() {
    return [...this.waiting].map(PUBLIC_WAIT);
  }

  /** Ends what still runs, so that a used lane leaves no timers and sockets behind. */
  dispose() {
    for (const close of [...this.closers]) close();
    this.#letGo(() => true);
    this.background.dispose();
  }
}
