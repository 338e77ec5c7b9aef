// The component's stream assembler says what the web build's says, of every recorded stream.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { StreamAssembler } from '../../js/entry/node.js';
import { corpora, DIALECTS } from './bodies.mjs';
import { loadComponent } from './component.mjs';

let component;
before(async () => {
  component = await loadComponent();
});
after(() => component?.remove());

/** Fewer recordings than these mean that some were lost. */
const LEAST = { 'openai-chat': 110, 'openai-responses': 55, anthropic: 50, gemini: 30, mistral: 10 };

function streams(dialect) {
  const folder = path.join(corpora, 'streams', dialect);
  return readdirSync(folder)
    .filter((name) => name !== 'index.json')
    .sort()
    .map((name) => {
      const text = readFileSync(path.join(folder, name), 'utf8');
      const framed = name.endsWith('.jsonl')
        ? text
            .split('\n')
            .filter(Boolean)
            .map((line) => `data: ${line}\n\n`)
            .join('')
        : text;
      return { name, bytes: Buffer.from(framed) };
    });
}

function* pieces(bytes) {
  for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 1021)
    yield bytes.subarray(at, at + size);
}

// A string of a component holds no half of a surrogate pair.
const whole = (text) => text.toWellFormed();
const number = (value) => (value === undefined ? undefined : Number(value));
const usage = (of) =>
  of && {
    inputTokens: number(of.input),
    outputTokens: number(of.output),
    cachedInputTokens: number(of.cachedInput),
    cacheWriteInputTokens: number(of.cacheWrite),
    reasoningTokens: number(of.reasoning),
  };
const plain = (value) => JSON.parse(JSON.stringify(value)); // members that are undefined are not there

/** An event of the component in the shape of the TypeScript types. */
function event({ tag, val }) {
  switch (tag) {
    case 'text-delta':
      return { type: 'text_delta', text: val };
    case 'reasoning-delta':
      return { type: 'reasoning_delta', text: val };
    case 'tool-call-started':
      return { type: 'tool_call_started', ...val };
    case 'tool-arguments':
      return { type: 'tool_arguments_delta', ...val };
    case 'tool-call-ready':
      return { type: 'tool_call_ready', ...val };
    case 'usage':
      return { type: 'usage', usage: usage(val) };
    case 'error':
      return { type: 'error', error: val };
    default:
      return assert.fail(tag);
  }
}

function response(made) {
  const { finishReason = null, responseId = null, error = null } = made;
  return {
    status: made.status,
    finishReason,
    responseId,
    text: made.text,
    toolCalls: made.toolCalls,
    usage: usage(made.usage) ?? null,
    error,
    wire: made.wire === undefined ? null : JSON.parse(made.wire),
  };
}

const wellFormed = (value) =>
  JSON.parse(JSON.stringify(value), (_, inner) => (typeof inner === 'string' ? whole(inner) : inner));

describe('streams', () => {
  for (const dialect of DIALECTS) {
    const recordings = streams(dialect);
    test(`${dialect}: ${recordings.length} recorded`, () => {
      const { wire } = component.exports;
      assert.ok(
        recordings.length >= LEAST[dialect],
        `${recordings.length} recordings of ${dialect}, ${LEAST[dialect]} at least`,
      );
      for (const { name, bytes } of recordings) {
        const web = new StreamAssembler(dialect);
        const own = wire.StreamAssembler.start(dialect);
        for (const piece of pieces(bytes)) {
          assert.deepEqual(plain(own.push(piece).map(event)), wellFormed(web.push(new Uint8Array(piece))), name);
        }
        assert.deepEqual(wellFormed(response(wire.StreamAssembler.finish(own))), wellFormed(web.finish()), name);
      }
    });
  }

  test('a stream that is cut off, and bytes that are not a stream', () => {
    const { wire } = component.exports;
    const start = () => wire.StreamAssembler.start('openai-chat');
    assert.equal(wire.StreamAssembler.finish(start()).status, 'truncated');
    const garbage = start();
    assert.deepEqual(garbage.push(Buffer.from([0, 255, 10, 10])), []);
    assert.notEqual(wire.StreamAssembler.finish(garbage).status, 'complete');
    const cut = start();
    cut.push(
      Buffer.from(
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}\n\n',
      ),
    );
    const { status, toolCalls } = wire.StreamAssembler.finish(cut);
    assert.deepEqual([status, toolCalls.map(({ executable }) => executable)], ['truncated', [false]]);
  });
});
