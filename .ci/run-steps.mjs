// Runs steps of the tests in processes of their own, two at once: most compile on one core, or wait for a page, a
// server or a timer.

import { fork } from 'node:child_process';

const CONCURRENT_STEPS = 2;
/** The time for which output is read after the process of a step has ended: a program that the step has started, and
 *  that runs on, keeps the pipe open. */
const LATE_OUTPUT_MS = 5000;

/** Waits until the printed output is written: `process.exit` drops what a pipe has not taken yet. */
export async function flushOutput() {
  const isWritten = (stream) => new Promise((written) => stream.write('', written));
  await Promise.all([process.stdout, process.stderr].map(isWritten));
}

/** Runs a step in its own process, and reports how it ended to the process that started it. What a step resolves to is
 *  the note in its line of the summary. */
export async function runStepInThisProcess({ step }, Skip) {
  let outcome = 'ok';
  let note = '';
  try {
    note = (await step()) ?? '';
  } catch (e) {
    outcome = e instanceof Skip ? 'skip' : 'FAIL';
    note = e instanceof Error ? e.message : String(e);
  }
  await new Promise((sent) => process.send({ outcome, note }, sent));
  await flushOutput();
  process.exit(outcome === 'FAIL' ? 1 : 0);
}

/** Prints the output of one step at a time: that of the oldest running step as it arrives, that of the other one when
 *  the first has ended. */
class StepOutputs {
  #entries = [];

  add(child) {
    const entry = { child, chunks: [], isDone: false };
    this.#entries.push(entry);
    const write = (chunk) => {
      if (this.#entries[0] === entry) process.stdout.write(chunk);
      else entry.chunks.push(chunk);
    };
    child.stdout.on('data', write);
    child.stderr.on('data', write);
    return {
      write,
      end: () => {
        entry.isDone = true;
        while (this.#entries[0]?.isDone) {
          this.#entries.shift();
          for (const chunk of this.#entries[0]?.chunks.splice(0) ?? []) process.stdout.write(chunk);
        }
      },
    };
  }

  /** Prints the held output of all steps, before the process ends. */
  flush() {
    for (const { chunks } of this.#entries) for (const chunk of chunks.splice(0)) process.stdout.write(chunk);
  }
}

/** The steps that a step runs after. */
const before = (step) => [...(step.after ?? []), ...(step.needs ?? [])];

/** Throws for steps that wait for each other: none of them could start. */
function checkOrder(steps) {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const checked = new Set();
  const visit = (step, path) => {
    if (path.includes(step.name))
      throw new Error(
        `steps wait for each other: ${[...path.slice(path.indexOf(step.name)), step.name].join(' after ')}`,
      );
    if (checked.has(step.name)) return;
    for (const name of before(step)) if (byName.has(name)) visit(byName.get(name), [...path, step.name]);
    checked.add(step.name);
  };
  for (const step of steps) visit(step, []);
}

/** True if a step can start beside those that run: the steps that it needs have ended, and no other one uses its target
 *  folder. A step that is `alone` takes both cores. */
function canStart(step, running, waiting) {
  if (running.some((other) => other.alone || (step.target && other.target === step.target))) return false;
  if (step.alone && running.length) return false;
  const unfinished = [...running, ...waiting].map(({ name }) => name);
  return !before(step).some((name) => unfinished.includes(name));
}

/** Resolves when a process has ended and its output was read. */
function waitForEnd(child) {
  return new Promise((resolve) => {
    child.once('close', resolve);
    child.once('exit', () => {
      const close = () => {
        for (const stream of [child.stdout, child.stderr]) stream.destroy();
      };
      const timer = setTimeout(close, LATE_OUTPUT_MS);
      child.once('close', () => clearTimeout(timer));
    });
  });
}

/** Runs one step in a process of `program`; returns its outcome and its line of the summary. */
function startStep(step, { program, args, outputs }) {
  const child = fork(program, [...args, '--step', step.name], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  const start = performance.now();
  const printed = outputs.add(child);
  printed.write(`\n=== ${step.name}: ${step.why}\n`);
  let reported = { outcome: 'FAIL', note: 'the process of the step ended early' };
  child.on('message', (message) => {
    reported = message;
  });
  const ended = waitForEnd(child).then(() => {
    const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(7);
    const line = `${reported.outcome.padEnd(5)}${step.name.padEnd(11)}${seconds} s  ${reported.note}`.trimEnd();
    printed.write(`${line}\n`);
    printed.end();
    return { step, line, outcome: reported.outcome };
  });
  return { step, child, ended };
}

/** Runs `steps` in the given order where they permit it; returns those that ended. Stops at the first failure unless
 *  `keepGoing`. Rejects if steps wait for each other. */
export async function runSteps(steps, { program, args, keepGoing }) {
  checkOrder(steps);
  const outputs = new StepOutputs();
  const waiting = [...steps];
  const running = new Set();
  const results = [];
  const stop = () => {
    for (const { child } of running) child.kill('SIGTERM');
  };
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, async () => {
      stop();
      outputs.flush();
      await flushOutput();
      process.exit(1);
    });
  let isStopped = false;
  while (running.size || (waiting.length && !isStopped)) {
    const active = [...running].map(({ step }) => step);
    const at =
      isStopped || running.size >= CONCURRENT_STEPS ? -1 : waiting.findIndex((step) => canStart(step, active, waiting));
    if (at >= 0) {
      const [step] = waiting.splice(at, 1);
      running.add(startStep(step, { program, args, outputs }));
      continue;
    }
    const result = await Promise.race([...running].map(({ ended }) => ended));
    for (const one of running) if (one.step === result.step) running.delete(one);
    results.push(result);
    if (result.outcome === 'FAIL' && !keepGoing && !isStopped) {
      isStopped = true;
      stop();
    }
  }
  return results;
}
