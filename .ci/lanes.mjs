// Runs steps in processes of their own, two at once: most compile on one core, or wait for a page, a server or a timer.

import { fork } from 'node:child_process';

const AT_ONCE = 2;
/** For how long the output of a step may come after its process has ended: a program that it has left behind keeps the
 *  pipe open. */
const LATE_OUTPUT_MS = 5000;

/** Waits until what was printed is written: `process.exit` drops what a pipe has not taken yet. */
export async function outputWritten() {
  const isWritten = (stream) => new Promise((written) => stream.write('', written));
  await Promise.all([process.stdout, process.stderr].map(isWritten));
}

/** In the process of a step: runs it, and reports how it ended to the process that started it. */
export async function runHere({ step }, Skip) {
  let outcome = 'ok';
  let note = '';
  try {
    await step();
  } catch (e) {
    outcome = e instanceof Skip ? 'skip' : 'FAIL';
    note = e instanceof Error ? e.message : String(e);
  }
  await new Promise((sent) => process.send({ outcome, note }, sent));
  await outputWritten();
  process.exit(outcome === 'FAIL' ? 1 : 0);
}

/** Prints the output of one step at a time: of the oldest that runs as it comes, of the other one after that. */
class Output {
  #waiting = [];

  add(child) {
    const entry = { child, chunks: [], isDone: false };
    this.#waiting.push(entry);
    const write = (chunk) => {
      if (this.#waiting[0] === entry) process.stdout.write(chunk);
      else entry.chunks.push(chunk);
    };
    child.stdout.on('data', write);
    child.stderr.on('data', write);
    return {
      write,
      end: () => {
        entry.isDone = true;
        while (this.#waiting[0]?.isDone) {
          this.#waiting.shift();
          for (const chunk of this.#waiting[0]?.chunks.splice(0) ?? []) process.stdout.write(chunk);
        }
      },
    };
  }

  /** Prints what waits, of steps that are not waited for. */
  flush() {
    for (const { chunks } of this.#waiting) for (const chunk of chunks.splice(0)) process.stdout.write(chunk);
  }
}

/** Whether a step can begin beside those that run: after the steps that it needs, and with nobody in its target folder.
 *  A step that is `alone` takes both cores. */
function canBegin(step, running, left) {
  if (running.some((other) => other.alone || (step.target && other.target === step.target))) return false;
  if (step.alone && running.length) return false;
  const unfinished = [...running, ...left].map(({ name }) => name);
  return ![...(step.after ?? []), ...(step.needs ?? [])].some((name) => unfinished.includes(name));
}

/** Waits until a process has ended and its output was read. */
function endOf(child) {
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
function begin(step, program, args, output) {
  const child = fork(program, [...args, '--step', step.name], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  const start = performance.now();
  const printed = output.add(child);
  printed.write(`\n=== ${step.name}: ${step.why}\n`);
  let said = { outcome: 'FAIL', note: 'the process of the step ended early' };
  child.on('message', (message) => {
    said = message;
  });
  const ended = endOf(child).then(() => {
    const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(7);
    const line = `${said.outcome.padEnd(5)}${step.name.padEnd(11)}${seconds} s  ${said.note}`.trimEnd();
    printed.write(`${line}\n`);
    printed.end();
    return { step, line, outcome: said.outcome };
  });
  return { step, child, ended };
}

/** Runs `steps` in the given order where they permit it; returns those that ended. Stops at the first failure unless
 *  `keepGoing`. */
export async function runSteps(steps, { program, args, keepGoing }) {
  const output = new Output();
  const left = [...steps];
  const running = new Set();
  const results = [];
  const stop = () => {
    for (const { child } of running) child.kill('SIGTERM');
  };
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, async () => {
      stop();
      output.flush();
      await outputWritten();
      process.exit(1);
    });
  let isStopped = false;
  while (running.size || (left.length && !isStopped)) {
    const active = [...running].map(({ step }) => step);
    const at = isStopped || running.size >= AT_ONCE ? -1 : left.findIndex((step) => canBegin(step, active, left));
    if (at >= 0) {
      const [step] = left.splice(at, 1);
      running.add(begin(step, program, args, output));
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
