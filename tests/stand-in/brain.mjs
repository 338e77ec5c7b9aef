// The small deterministic "model": two calls at once, one more call, then an answer that quotes the results.

const CITIES = [
  'Paris',
  'London',
  'Berlin',
  'Tokyo',
  'Oslo',
  'Madrid',
  'Rome',
  'Lisbon',
  'Vienna',
  'Prague',
  'Dublin',
  'Athens',
  'Helsinki',
  'Stockholm',
  'Warsaw',
  'Zürich',
  'Geneva',
  'Sydney',
  'Toronto',
  'Chicago',
  'Boston',
  'Seattle',
  'New York',
  'San Francisco',
  'São Paulo',
  'Mexico City',
  'Cairo',
  'Nairobi',
  'Mumbai',
  'Delhi',
  'Seoul',
  'Beijing',
];

/** What stands in a request for a result that is still to come, and before one that came later. */
const PENDING = 'Pending:';
const LATE = '[Late output of a tool';

function citiesIn(text) {
  const found = CITIES.map((c) => [text.indexOf(c), c])
    .filter(([at]) => at >= 0)
    .sort((a, b) => a[0] - b[0])
    .map(([, c]) => c);
  if (found.length) return found;
  return [...text.matchAll(/\b(?:in|for|at|of|near)\s+(\p{Lu}[\p{L}-]+)/gu)].map((m) => m[1]);
}

/** A value that fits the schema. `turn` makes the second call of one tool differ from the first. */
function valueFor(schema, cities, turn, depth = 0) {
  if (!schema || typeof schema !== 'object' || depth > 4) return 'Paris';
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[turn % schema.enum.length];
  const any = schema.anyOf ?? schema.oneOf;
  if (!schema.type && any) return valueFor(any[0], cities, turn, depth + 1);
  const type = Array.isArray(schema.type) ? schema.type.find((t) => t !== 'null') : schema.type;
  if (type === 'number' || type === 'integer')
    return Math.min((schema.minimum ?? 1) + turn, schema.maximum ?? Infinity);
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  if (type === 'array') return [valueFor(schema.items ?? { type: 'string' }, cities, turn, depth + 1)];
  if (type === 'object' || schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([k, s]) => [k, valueFor(s, cities, turn, depth + 1)]),
    );
  }
  if (turn < cities.length) return cities[turn];
  // Past the cities of the question, take others, so that no call repeats an earlier one.
  const others = CITIES.filter((c) => !cities.includes(c));
  return others[(turn - cities.length) % others.length];
}

const argumentsFor = (tool, cities, turn) => {
  const value = valueFor({ type: 'object', ...tool.schema }, cities, turn);
  return value && typeof value === 'object' && !Array.isArray(value) ? value : {};
};

const clip = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

function finalText(view) {
  const said = view.results.map((r) => `${r.name ?? 'a tool'} answered ${clip(r.text, 400)}.`);
  return [
    `You asked: "${clip(view.userText, 200)}".`,
    `I called ${view.results.length} tools in ${view.rounds} rounds and this is what came back.`,
    ...said,
    'Those are all the results that I have at hand, quoted as they arrived and in the order in which they arrived,',
    'so nothing in this answer was made up and nothing was left out. Ask again if you want another place looked up.',
  ].join(' ');
}

function plainText(view) {
  return `You said: "${clip(view.userText || 'nothing', 400)}". I have no tool to call here, so this is my whole answer.`;
}

/** The call that "send 20 euros to Ada" asks for, if there is a tool for it. */
function paymentIn(view) {
  const asked = /\bsend (\d+) euros? to (.+?)[.!]?$/iu.exec(view.userText.trim());
  if (!asked || !view.tools.some(({ name }) => name === 'send_money')) return null;
  return { name: 'send_money', arguments: { to: asked[2], amount: Number(asked[1]) } };
}

/** The call that "ask Ada whether Friday suits her" asks for, if there is a tool for it. */
function errandIn(view) {
  const asked = /^ask (\S+) (.+?)[.?!]*$/iu.exec(view.userText.trim());
  if (!asked || !view.tools.some(({ name }) => name === 'ask_person')) return null;
  return { name: 'ask_person', arguments: { name: asked[1], question: asked[2] } };
}

/** What is said about an errand, of which the result may have come. */
function errandText({ arguments: { name } }, results) {
  const answer = results.find(({ text }) => !text.startsWith(PENDING))?.text;
  return answer
    ? `${name} answered: "${clip(answer, 400)}"`
    : `I have asked ${name}. The answer comes later, and you can go on meanwhile.`;
}

/** A step (the same shape that a script has) for the request seen in `view`. */
export function think(view) {
  const thinking = view.thinking
    ? { text: `Round ${view.rounds + 1}: what do I know, and what is missing?` }
    : undefined;
  if (!view.mayCall) return { thinking, text: view.results.length ? finalText(view) : plainText(view) };
  if (view.userText.startsWith(LATE))
    return {
      thinking,
      text: `The answer has come: "${clip(view.userText.split('\n').slice(1).join(' ').trim(), 400)}"`,
    };
  const errand = errandIn(view);
  if (errand && view.rounds === 0) return { thinking, text: `I will ask ${errand.arguments.name}.`, calls: [errand] };
  if (errand) return { thinking, text: errandText(errand, view.results) };
  const payment = paymentIn(view);
  if (payment && view.rounds === 0) return { thinking, text: 'I will ask you first.', calls: [payment] };
  if (payment) return { thinking, text: finalText(view) };
  const cities = citiesIn(view.userText);
  if (!cities.length) cities.push('Paris');
  const [first, second, third] = view.tools;
  if (view.rounds === 0) {
    const other = second
      ? { name: second.name, arguments: argumentsFor(second, cities, 0) }
      : { name: first.name, arguments: argumentsFor(first, cities, 1) };
    return {
      thinking,
      text: 'Let me look that up.',
      calls: [{ name: first.name, arguments: argumentsFor(first, cities, 0) }, other],
    };
  }
  if (view.rounds === 1) {
    const tool = third ?? first;
    // A lone tool was already called with the first two choices.
    const turn = third ? 0 : second ? 1 : 2;
    return {
      thinking,
      text: 'One more thing to check.',
      calls: [{ name: tool.name, arguments: argumentsFor(tool, cities, turn) }],
    };
  }
  return { thinking, text: finalText(view) };
}
