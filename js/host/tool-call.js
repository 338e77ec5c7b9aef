// Executes a tool of the application.

import { memberOf } from '../untrusted-value.js';
import { pending, validateArguments, validates } from '../tool.js';
import { IdleTimeout } from './async.js';
import { redactedError } from './redacted-error.js';

/** Executes a `run_tool` effect. Returns without an answer if `signal` aborts, and for a tool that the application
 *  answers itself. */
export async function runTool(run, effect, options, signal) {
  if (signal.aborted) return;
  // The name is the model's: an inherited member, such as `toString`, is no tool.
  const tool = run.tools && Object.hasOwn(run.tools, effect.name) ? run.tools[effect.name] : undefined;
  const timeout = new IdleTimeout(options.toolTimeoutMs, signal);
  const { value: args, problem } = await validArguments(tool, effect, timeout, options);
  if (signal.aborted) return;
  if (problem) {
    await run.answer(effect.id, errorResult(options.credentials.redact(problem)));
    return;
  }
  if (typeof tool?.execute !== 'function') return;
  try {
    // The start is stored before the tool runs: from here on it counts as possibly run.
    await run.answer(effect.id, { type: 'started' });
  } catch {
    return; // the start could not be stored, so the tool must not run; the run reports the reason
  }
  const result = await toolResult(tool, args, effect, timeout, options);
  if (!signal.aborted || !result.isError) await answerResult(run, effect, result, options);
}

/** The result of the tool, that it comes later, or an error result if it throws or takes too long. */
async function toolResult(tool, args, effect, timeout, options) {
  const { callId, invocationId, attempt, argumentsText } = effect;
  const context = { callId, invocationId, attempt, argumentsText, signal: timeout.signal };
  try {
    const content = await timeout.limit(Promise.resolve().then(() => tool.execute(args, context)));
    return content === pending ? { type: 'pending' } : { type: 'tool_result', content };
  } catch (error) {
    return errorResult(
      timeout.hasExpired
        ? `the tool did not return within ${options.toolTimeoutMs} ms`
        : redactedError(error, options).message,
    );
  }
}

async function answerResult(run, effect, result, options) {
  try {
    await run.answer(effect.id, result);
  } catch (error) {
    // A result without a JSON representation (a cycle, a BigInt) is a failure of the tool, and so is `pending` of a
    // tool that is not `async`.
    const isFailure = result.type === 'pending' ? 'wrong_state' : 'invalid_input';
    if (memberOf(error, 'code') !== isFailure) throw error;
    await run.answer(effect.id, errorResult(redactedError(error, options).message));
  }
}

const errorResult = (message) => ({ type: 'tool_result', content: `Error: ${message}`, isError: true });

/** The validated arguments, or the reason why the tool does not run. Also for tools that the application answers
 *  itself. */
async function validArguments(tool, effect, timeout, { toolTimeoutMs }) {
  if (!validates(tool)) return { value: effect.arguments };
  try {
    return await timeout.limit(validateArguments(tool, effect.arguments));
  } catch {
    return { problem: `the arguments were not validated within ${toolTimeoutMs} ms, so the tool was not run` };
  }
}
