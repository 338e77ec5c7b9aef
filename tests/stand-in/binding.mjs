// Reasoning that is bound to the prefix that produced it, in a lane with the option `binding`: Anthropic refuses it or
// drops it, OpenAI Responses removes it without a word. Shares no code with the engine.

import { errorBody } from './rules-anthropic.mjs';
import { digest } from './signature.mjs';

const BETA = 'thinking-binding-controls-2026-08-01';
/** The models whose reasoning is bound. */
const BINDS = /fable-5[-.][12]|mythos-5[-.]2|(?:opus|sonnet|haiku)-5[-.]5|gpt-6\.[2-9]/;
/** Before the digests of the service, the prefix and the model, at the end of a signature. */
const SEAL = /\.([a-zA-Z0-9]{8})([a-zA-Z0-9]{24})([a-zA-Z0-9]{8})$/;

/** True if the reasoning of a model is bound to its prefix. */
export const binds = (model) => BINDS.test(model);

const list = (value) => (typeof value === 'string' ? [{ type: 'text', text: value }] : (value ?? []));

/** The value without `cache_control`, its members in one order. */
function compared(value) {
  if (Array.isArray(value)) return value.map(compared);
  if (value === null || typeof value !== 'object') return value;
  const keys = Object.keys(value)
    .filter((key) => key !== 'cache_control')
    .sort();
  return Object.fromEntries(keys.map((key) => [key, compared(value[key])]));
}

/** A digest that grows with what is added. */
class Prefix {
  constructor(...head) {
    this.value = digest(JSON.stringify(compared(head)));
  }

  add(...parts) {
    this.value = digest(`${this.value}${JSON.stringify(compared(parts))}`);
  }
}

const modelDigest = (model) => digest(`model:${model}`, 8);
/** The service that signs, by a header of tests: services of other vendors cannot read its reasoning. */
const serviceDigest = (headers) => digest(`service:${headers['x-service'] ?? ''}`, 8);
const reasonOf = ([, service, made, by], { prefix, model, headers }) => {
  if (service !== serviceDigest(headers)) return 'service';
  if (!binds(model)) return null;
  if (by !== modelDigest(model)) return 'model';
  return made === prefix.value ? null : 'prefix';
};

/** What is wrong with each signed block of a body: `{at: [message, block], reason}`; and the digest of the whole. */
function judgeAnthropic(body, request) {
  const prefix = new Prefix(list(body.system), body.tools ?? []);
  const found = [];
  let broken = false;
  body.messages.forEach((message, i) =>
    list(message.content).forEach((block, k) => {
      const seal = SEAL.exec(
        block.type === 'thinking' ? block.signature : block.type === 'redacted_thinking' ? block.data : '',
      );
      const reason = seal && reasonOf(seal, { ...request, prefix });
      // The first block that fails makes every later one fail. Another model's is dropped, and no error.
      broken ||= reason === 'prefix';
      if (seal && (broken || reason)) found.push({ at: [i, k], reason: broken ? 'prefix' : reason });
      prefix.add(message.role, block);
    }),
  );
  return { found, prefix: prefix.value };
}

const CONTROLLED = new Set(['adaptive', 'enabled']);

function bindAnthropic({ body, model, headers }) {
  const behavior = body.thinking?.block_binding?.prefix_mismatch_behavior;
  const hasBeta = (headers['anthropic-beta'] ?? '').split(/\s*,\s*/).includes(BETA);
  const refuse = (text) => ({ refused: { status: 400, error: errorBody(text) } });
  if (body.thinking?.block_binding !== undefined && !(hasBeta && CONTROLLED.has(body.thinking.type))) {
    return refuse('thinking.block_binding: Extra inputs are not permitted');
  }
  const { found, prefix } = judgeAnthropic(body, { model, headers });
  const pathOf = ({ at }) => `messages.${at[0]}.content.${at[1]}`;
  const foreign = found.find(({ reason }) => reason === 'service');
  if (foreign) return refuse(`${pathOf(foreign)}: Invalid \`signature\` in \`thinking\` block`);
  const bad = found.find(({ reason }) => reason === 'prefix');
  if (bad && behavior !== 'drop_block') {
    return refuse(
      `${pathOf(bad)}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`,
    );
  }
  const dropped = found.map((block) => ({
    type: 'thinking_dropped',
    path: pathOf(block),
    reason: `${block.reason}_binding_mismatch`,
  }));
  return {
    seal: `.${serviceDigest(headers)}${prefix}${modelDigest(model)}`,
    dropped,
    listed: hasBeta ? dropped : undefined,
  };
}

/** Items that do not count in a prefix as they were sent: the service removes reasoning, and keeps the rest. */
function bindResponses({ body, model, headers }) {
  const prefix = new Prefix(body.instructions ?? null, body.tools ?? []);
  const dropped = [];
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : (body.input ?? []);
  for (const item of input) {
    const seal = item.type === 'reasoning' && SEAL.exec(item.encrypted_content ?? '');
    const reason = seal && reasonOf(seal, { prefix, model, headers });
    if (reason === 'service') {
      const message = `The encrypted content for item ${item.id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`;
      return {
        refused: {
          status: 400,
          error: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_encrypted_content' } },
        },
      };
    }
    if (reason) dropped.push({ type: 'reasoning', action: 'removed', id: item.id, reason: `${reason}_mismatch` });
    prefix.add(item);
  }
  return {
    seal: `.${serviceDigest(headers)}${prefix.value}${modelDigest(model)}`,
    dropped,
    listed: dropped.length ? dropped : undefined,
  };
}

/** What a binding lane makes of a request that is otherwise accepted: `{refused}`, or the `seal` of its answer's
 *  reasoning, what was `dropped`, and what of that the answer has `listed`. Nothing for a dialect that binds
 *  nothing. */
export function bind({ dialect, body, model = body.model ?? '', headers }) {
  if (dialect === 'anthropic') return bindAnthropic({ body, model, headers });
  return dialect === 'openai-responses' ? bindResponses({ body, model, headers }) : {};
}

/** A step whose reasoning carries the seal. */
export function sealed(step, { seal }, sign) {
  const { thinking } = step;
  if (!thinking || !seal) return step;
  const bound = thinking.redacted
    ? { redacted: thinking.redacted + seal }
    : { ...thinking, signature: (thinking.signature ?? sign(thinking.text)) + seal };
  return { ...step, thinking: bound };
}
