// What a body says, in whatever format: its texts, and its calls with names and arguments.

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reasoning belongs to the provider that made it: leaving it out is allowed where the provider allows it. */
const isReasoning = (value) =>
  isObject(value) &&
  (/^(?:redacted_)?(?:thinking|reasoning)/.test(value.type) || value.thought || value.reasoningContent);

/** Every value below `value`, with the member that holds it. */
function* valuesBelow(value, member = null) {
  yield [member, value];
  if (Array.isArray(value)) for (const inner of value) yield* valuesBelow(inner, member);
  else if (isObject(value)) for (const [key, inner] of Object.entries(value)) yield* valuesBelow(inner, key);
}

/** The same without reasoning. */
function* statedBelow(value, member = null) {
  if (isReasoning(value)) return;
  yield [member, value];
  if (Array.isArray(value)) for (const inner of value) yield* statedBelow(inner, member);
  else if (isObject(value)) for (const [key, inner] of Object.entries(value)) yield* statedBelow(inner, key);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Equal whatever the order of the members is. */
const canonical = (value) =>
  JSON.stringify(value, (_, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );

const ARGUMENTS = ['input', 'args', 'arguments'];
/** The members in which the dialects have text, and results. */
const TEXTS = new Set(['text', 'content', 'output', 'result', 'response']);

/** The conversation in a body: not its tools, nor its settings. */
export const conversationOf = (body) => ({
  system: body.system ?? body.systemInstruction ?? body.instructions,
  list: body.messages ?? body.contents ?? body.input,
});

/** The calls of a body, as texts that are equal where the calls are. */
function callsIn(body) {
  const calls = [];
  for (const [, value] of statedBelow(conversationOf(body))) {
    if (!isObject(value) || typeof value.name !== 'string') continue;
    const member = ARGUMENTS.find((name) => value[name] !== undefined);
    if (!member) continue;
    const input = typeof value[member] === 'string' ? parsed(value[member]) : value[member];
    calls.push({ name: value.name, input });
  }
  return calls;
}

/** The texts of a body, without white space around them. */
function textsIn(body) {
  const texts = [];
  for (const [member, value] of statedBelow(conversationOf(body)))
    if (typeof value === 'string' && TEXTS.has(member) && value.trim()) texts.push(value.trim());
  return texts;
}

/** True if the conversation says the text at all. */
export const says = (body, text) => timesSaid(body, text) > 0;

export const factsOf = (body) => ({ texts: textsIn(body), calls: callsIn(body) });

/** How often `text` stands in the strings of the conversation. */
function timesSaid(body, text) {
  let times = 0;
  for (const [, value] of valuesBelow(conversationOf(body)))
    if (typeof value === 'string') times += value.split(text).length - 1;
  return times;
}

const counted = (list, nameOf) => {
  const counts = new Map();
  for (const one of list) counts.set(nameOf(one), [one, (counts.get(nameOf(one))?.[1] ?? 0) + 1]);
  return counts;
};

/** The texts of a value that are JSON, and the value itself. */
const readings = (input) =>
  new Set(
    [input, ...[...valuesBelow(input)].map(([, value]) => value)].map((value) =>
      canonical(typeof value === 'string' ? parsed(value) : value),
    ),
  );

/** The calls of `calls` that `body` does not have. Arguments that are no object may be wrapped in one. */
function missingCalls(calls, body) {
  const left = callsIn(body).map(({ name, input }) => ({ name, is: readings(input) }));
  return calls.filter(({ name, input }) => {
    const wanted = canonical(input);
    const at = left.findIndex((call) => call.name === name && call.is.has(wanted));
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** The facts that `body` lacks: what is said twice must stand there twice. */
export function missingFacts({ texts, calls }, body) {
  const lost = { texts: [], calls: missingCalls(calls, body) };
  for (const [text, [, times]] of counted(texts, (one) => one))
    for (let n = timesSaid(body, text); n < times; n += 1) lost.texts.push(text);
  return lost;
}

/** The facts that both bodies have. */
export function commonFacts(given, right) {
  const facts = factsOf(given);
  const lost = missingFacts(facts, right);
  const without = (list, gone, nameOf) => {
    const left = gone.map(nameOf);
    return list.filter((one) => {
      const at = left.indexOf(nameOf(one));
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
  };
  return {
    texts: without(facts.texts, lost.texts, (one) => one),
    calls: without(facts.calls, lost.calls, canonical),
  };
}

/** How often each leaf stands in a body, by `member=value`. */
export function leaves(body) {
  const counts = new Map();
  for (const [member, value] of valuesBelow(body)) {
    if (value === null || typeof value === 'object') continue;
    const leaf = `${member}=${JSON.stringify(value)}`;
    counts.set(leaf, (counts.get(leaf) ?? 0) + 1);
  }
  return counts;
}
