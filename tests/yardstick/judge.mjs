// Judges what was sent for a vector. What providers reject is decided by the rules of the stand-in, which share no code
// with this library's core.

import { DIALECTS } from '../stand-in/dialects.mjs';
import { leaves, missingFacts, says } from './facts.mjs';

export const OUTCOMES = ['right', 'drops', 'throws', 'passes broken'];

/** What the rules are about. Other settings that a library adds, such as `stream_options`, are not measured. */
const ABOUT = new Set(
  `model max_tokens messages contents input system systemInstruction instructions tools tool_choice toolConfig
  thinking`.split(/\s+/),
);
const measured = (body, given) =>
  Object.fromEntries(Object.entries(body).filter(([key]) => ABOUT.has(key) || Object.hasOwn(given.body, key)));

/** What the provider says about a body, or null if it accepts it. */
export function refusalOf(body, { dialect, given }) {
  const refused = DIALECTS[dialect].check(measured(body, given), { model: given.model });
  if (!refused) return null;
  const said = refused.error.error?.message ?? refused.error.message ?? refused.error;
  return typeof said === 'string' ? said : JSON.stringify(said);
}

function lostFacts(vector, body) {
  const { texts, calls } = missingFacts(vector.right.keeps, body);
  const results = (vector.right.keeps.oneOf ?? []).filter((list) => !list.some((text) => says(body, text)));
  return [
    ...[...texts, ...results.map(([text]) => text)].map((text) => `the text "${text}"`),
    ...calls.map(({ name }) => `a call of ${name}`),
  ];
}

function judgeKept(vector, body) {
  const lost = lostFacts(vector, body);
  if (lost.length) return { outcome: 'drops', detail: lost.join(', ') };
  return { outcome: 'right' };
}

/** True if the stand-in has the rule of a vector, and takes the body that the page gives. */
export function isJudged(vector) {
  const { given, provider, right } = vector;
  const isRefused = Boolean(refusalOf(given.body, vector));
  const asStated = provider.answer || isRefused !== provider.accepts;
  return Boolean(asStated && !(right.body && refusalOf(right.body, vector)));
}

/** The other cure of bound reasoning: the service leaves out what does not fit. */
const asksToDrop = ({ thinking }) => thinking?.block_binding?.prefix_mismatch_behavior === 'drop_block';

/** An error after which the same request must not be sent as it was. */
function judgeHealed(vector, bodies, threw) {
  const rest = Object.entries(vector.right.atMost);
  const left = (body) => {
    const has = leaves(body);
    return rest.find(([leaf, times]) => (has.get(leaf) ?? 0) > times)?.[0];
  };
  const clean = bodies.find((body) => !refusalOf(body, vector) && (!left(body) || asksToDrop(body)));
  if (clean) return judgeKept(vector, clean);
  if (!bodies.length) return { outcome: 'throws', detail: threw ?? 'sends nothing' };
  return { outcome: 'passes broken', detail: refusalOf(bodies.at(-1), vector) ?? `sent with ${left(bodies.at(-1))}` };
}

/** `{ outcome, detail? }` of the bodies that were sent for a vector, in their order, and of what was thrown. */
export function judge(vector, { bodies, threw }) {
  const { outcome } = vector.right;
  if (outcome === 'healed') return judgeHealed(vector, bodies, threw);
  if (outcome === 'not_repeated')
    return bodies.length > 1 ? { outcome: 'passes broken', detail: 'the same request again' } : { outcome: 'right' };
  const accepted = bodies.find((body) => !refusalOf(body, vector));
  if (accepted) return judgeKept(vector, accepted);
  if (bodies.length) return { outcome: 'passes broken', detail: refusalOf(bodies.at(-1), vector) };
  if (outcome === 'nothing_to_send') return { outcome: 'right' };
  return { outcome: 'throws', detail: threw ?? 'sends nothing' };
}
