// Reasoning that is bound to the prefix that produced it, in a lane with the option `binding`: Anthropic refuses it or drops it, OpenAI
// Responses removes it without a word. Shares no code with the engine.

import { errorBody } from './rules-anthropic.mjs';
import { digest } from './signature.mjs';

const BETA = 'thinking-binding-controls-2026-08-01';
/** The models whose thinking is bound. */
const BINDS = /fable-5[-.][12]|mythos-5[-.]2|(?:opus|sonnet|haiku)-5[-.]5/;
/** Before the digests of the prefix and the model, at the end of a signature. */
const SEAL = /\.([a-zA-Z0-9]{24})([a-zA-Z0-9]{8})$/;

const list = (value) => (typeof value === 'string' ? [{ type: 'text', text: value }] : value ?? []);

/** The value without `cache_control`, its members in one order. */
function compared(value) {
  if (Array.isArray(value)) return value.map(compared);
  if (value === null || typeof value !== 'object') return value;
  const keys = Object.keys(value).filter((key) => key !== 'cache_control').sort();
  return Object.fromEntries(keys.map((key) => [key, compared(value[key])]));
}

/** A digest that grows with what is added. */
class Prefix {
  constructor(...head) { this.value = digest(JSON.stringify(compared(head))); }

  add(...parts) { this.value = digest(`${this.value}${JSON.stringify(compared(parts))}`); }
}

const modelDigest = (model) => digest(`model:${model}`, 8);
const reasonOf = (seal, prefix, model) => {
  if (seal[2] !== modelDigest(model)) return 'model';
  return seal[1] === prefix.value ? null : 'prefix';
};

/** What is wrong with each bound block of a body: `{at: [message, block], reason}`; and the digest of the whole. */
function judgeAnthropic(body, model) {
  const prefix = new Prefix(list(body.system), body.tools ?? []);
  const found = [];
  let broken = false;
  body.messages.forEach((message, i) => list(message.content).forEach((block, k) => {
    const seal = SEAL.exec(block.type === 'thinking' ? block.signature : block.type === 'redacted_thinking' ? block.data : '');
    const reason = seal && reasonOf(seal, prefix, model);
    // The first block that fails makes every later one fail. Another model's is dropped, and no error.
    broken ||= reason === 'prefix';
    if (seal && (broken || reason)) found.push({ at: [i, k], reason: broken ? 'prefix' : reason });
    prefix.add(message.role, block);
  }));
  return { found, prefix: prefix.value };
}

function bindAnthropic({ body, model, headers }) {
  const behavior = body.thinking?.block_binding?.prefix_mismatch_behavior;
  if (body.thinking?.block_binding !== undefined && !(headers['anthropic-beta'] ?? '').split(/\s*,\s*/).includes(BETA)) {
    return { refused: { status: 400, error: errorBody('thinking.block_binding: Extra inputs are not permitted') } };
  }
  if (!BINDS.test(model)) return {};
  const { found, prefix } = judgeAnthropic(body, model);
  const bad = found.find(({ reason }) => reason === 'prefix');
  if (bad && behavior !== 'drop_block') {
    const path = `messages.${bad.at[0]}.content.${bad.at[1]}`;
    const text = `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`;
    return { refused: { status: 400, error: errorBody(text) } };
  }
  const transformations = found.map(({ at, reason }) => ({ type: 'thinking_dropped', path: `messages.${at[0]}.content.${at[1]}`, reason }));
  return { seal: `.${prefix}${modelDigest(model)}`, transformations };
}

/** Items that do not count in a prefix as they were sent: the service removes reasoning, and keeps the rest. */
function bindResponses({ body, model }) {
  const prefix = new Prefix(body.instructions ?? null, body.tools ?? []);
  const transformations = [];
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input ?? [];
  input.forEach((item, index) => {
    const seal = item.type === 'reasoning' && SEAL.exec(item.encrypted_content ?? '');
    const reason = seal && reasonOf(seal, prefix, model);
    if (reason) transformations.push({ type: 'reasoning_removed', item_id: item.id, index, reason: `${reason}_mismatch` });
    prefix.add(item);
  });
  return { seal: `.${prefix.value}${modelDigest(model)}`, transformations };
}

/** What a binding lane makes of a request that is otherwise accepted: `{refused}`, or the `seal` of its answer's reasoning and the
 *  `transformations` that the answer lists. Nothing for a dialect or a model that binds nothing. */
export function bind({ dialect, body, model = body.model ?? '', headers }) {
  if (dialect === 'anthropic') return bindAnthropic({ body, model, headers });
  return dialect === 'openai-responses' ? bindResponses({ body, model }) : {};
}

/** A step whose reasoning carries the seal. */
export function sealed(step, { seal }, sign) {
  const { thinking } = step;
  if (!thinking || !seal) return step;
  const bound = thinking.redacted ? { redacted: thinking.redacted + seal } : { ...thinking, signature: (thinking.signature ?? sign(thinking.text)) + seal };
  return { ...step, thinking: bound };
}
