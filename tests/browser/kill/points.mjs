// Where a run of three tools is killed, and what its journal must say then.
//
// The run: a first answer calls alpha and beta together, a second one calls gamma, a third one is text.

/** What the model says, one step an answer. */
export const STEPS = [
  {
    text: 'First two things at once.',
    calls: [
      { name: 'alpha', arguments: { city: 'Oslo and the fjord' } },
      { name: 'beta', arguments: { city: 'Lima' } },
    ],
  },
  { text: 'One more.', calls: [{ name: 'gamma', arguments: { city: 'Kyoto' } }] },
  { text: 'All three are done, and this says so in a few words.' },
];

/** The turn before it. */
export const EARLIER = [{ calls: [{ name: 'earlier', arguments: { city: 'Rome' } }] }, { text: 'That was before.' }];

const step = (name) => ({ phase: 'point', name });
const model = (n) => ({ phase: 'model', ordinal: EARLIER.length + n });
const starts = (name) => ({ phase: 'start', name });
const ends = (name) => ({ phase: 'end', name });
const gate = { gate: true };

const one = (alpha, beta) => ({ turn: 1, calls: { alpha, beta } });
const two = (gamma) => ({ turn: 2, calls: { gamma } });
const none = { turn: 0, calls: {} };
const [ready, running, done] = ['not_started', 'started', 'answered'];
const either = (...states) => states;

// `at`: all of it hangs when the kill comes. `race`: the first of it is let go, and the kill comes while it is written.
// `stream`: that answer stops behind so many pieces. `turn`: how many answers are journalled; `calls`: the open round.

/** Up to the first answer. */
export const answer = named([
  ['before the run is journalled', { at: [step('before run')], race: true, begun: 'maybe', ...none }],
  ['before call 1', { at: [step('before call 1')], ...none }],
  ['call 1 arrived', { at: [model(1)], ...none }],
  ['answer 1: no piece', { at: [gate], stream: [1, 0], ...none }],
  ['answer 1: in the text', { at: [gate], stream: [1, 3], ...none }],
  ["answer 1: in alpha's arguments", { at: [gate], stream: [1, 8], ...none }],
  ["answer 1: in beta's arguments", { at: [gate], stream: [1, 13], ...none }],
  ['answer 1 whole, not journalled', { at: [step('before answer 1')], ...none }],
  [
    'answer 1 being journalled',
    {
      at: [step('before answer 1')],
      stay: [step('before start alpha'), step('before start beta')],
      race: true,
      turn: either(0, 1),
      calls: { alpha: ready, beta: ready },
    },
  ],
  [
    'answer 1 journalled',
    { at: [step('after answer 1'), step('before start alpha'), step('before start beta')], ...one(ready, ready) },
  ],
]);

/** The two tools of the first round. */
export const tools = named([
  [
    "alpha's start being journalled",
    {
      at: [step('before start alpha'), step('before start beta')],
      stay: [starts('alpha')],
      race: true,
      ...one(either(ready, running), ready),
    },
  ],
  ["alpha's start journalled", { at: [step('after start alpha'), step('before start beta')], ...one(running, ready) }],
  ['alpha runs', { at: [starts('alpha'), step('before start beta')], ...one(running, ready) }],
  ['alpha ended outside', { at: [ends('alpha'), step('before start beta')], ...one(running, ready) }],
  [
    "alpha's result in the page",
    { at: [step('before result alpha'), step('before start beta')], ...one(running, ready) },
  ],
  [
    "alpha's result being journalled",
    { at: [step('before result alpha'), step('before start beta')], race: true, ...one(either(running, done), ready) },
  ],
  [
    'alpha answered, beta not started',
    { at: [step('after result alpha'), step('before start beta')], ...one(done, ready) },
  ],
  [
    'beta answered, alpha not started',
    { at: [step('after result beta'), step('before start alpha')], ...one(ready, done) },
  ],
  ['alpha and beta run', { at: [starts('alpha'), starts('beta')], ...one(running, running) }],
  ['alpha ended outside, beta runs', { at: [ends('alpha'), starts('beta')], ...one(running, running) }],
  ['alpha answered, beta runs', { at: [step('after result alpha'), starts('beta')], ...one(done, running) }],
  ['beta answered, alpha runs', { at: [step('after result beta'), starts('alpha')], ...one(running, done) }],
  ['alpha answered, beta ended outside', { at: [step('after result alpha'), ends('beta')], ...one(done, running) }],
  [
    "beta's result being journalled",
    {
      at: [step('before result beta'), step('after result alpha')],
      stay: [step('before call 2')],
      race: true,
      ...one(done, either(running, done)),
    },
  ],
  ['both answered, before call 2', { at: [step('before call 2')], ...one(done, done) }],
]);

/** From the second call to the end. */
export const rest = named([
  ['call 2 arrived', { at: [model(2)], ...one(done, done) }],
  ["answer 2: in gamma's arguments", { at: [gate], stream: [2, 4], ...one(done, done) }],
  ['answer 2 whole, not journalled', { at: [step('before answer 2')], ...one(done, done) }],
  [
    'answer 2 being journalled',
    {
      at: [step('before answer 2')],
      stay: [step('before start gamma')],
      race: true,
      turn: either(1, 2),
      calls: { alpha: done, beta: done, gamma: ready },
    },
  ],
  ['answer 2 journalled', { at: [step('after answer 2'), step('before start gamma')], ...two(ready) }],
  [
    "gamma's start being journalled",
    { at: [step('before start gamma')], stay: [starts('gamma')], race: true, ...two(either(ready, running)) },
  ],
  ["gamma's start journalled", { at: [step('after start gamma')], ...two(running) }],
  ['gamma runs', { at: [starts('gamma')], ...two(running) }],
  ['gamma ended outside', { at: [ends('gamma')], ...two(running) }],
  ["gamma's result in the page", { at: [step('before result gamma')], ...two(running) }],
  [
    "gamma's result being journalled",
    { at: [step('before result gamma')], stay: [step('before call 3')], race: true, ...two(either(running, done)) },
  ],
  ['gamma answered, before call 3', { at: [step('before call 3')], ...two(done) }],
  ['call 3 arrived', { at: [model(3)], ...two(done) }],
  ['answer 3: in the text', { at: [gate], stream: [3, 5], ...two(done) }],
  ['answer 3 whole, not saved', { at: [step('before answer 3')], ...two(done) }],
  ['at the save', { at: [step('before answer 3')], race: true, saved: 'maybe', ...two(done) }],
  ['saved', { at: [step('after answer 3')], saved: 'yes', turn: 3, calls: {} }],
  ['finished', { at: [step('after finish')], saved: 'yes', turn: 3, calls: {} }],
]);

/** Where a tool may have run, for tools that say `rerun`. */
export const rerun = [...tools, ...rest]
  .filter(({ calls }) => Object.values(calls).flat().includes(running))
  .map((point) => ({ ...point, name: `${point.name} (rerun)`, onInterrupted: 'rerun' }));

/** What the short form kills in the modes `call` and `result`: each kind of write, before, while and after it is
 *  made. */
const SHORT = new Set([
  'call 1 arrived',
  "answer 1: in beta's arguments",
  'answer 1 whole, not journalled',
  'answer 1 being journalled',
  'answer 1 journalled',
  "alpha's start being journalled",
  'alpha runs',
  "alpha's result in the page",
  "alpha's result being journalled",
  'alpha answered, beta not started',
  'beta answered, alpha runs',
  "beta's result being journalled",
  'both answered, before call 2',
  "answer 2: in gamma's arguments",
  'answer 2 being journalled',
  'gamma runs',
  "gamma's result being journalled",
  'call 3 arrived',
  'at the save',
  'saved',
]);

/** The points in a mode in which history is written during the run. */
export const inMode = (persistence, isLong) =>
  [...answer, ...tools, ...rest]
    .filter(({ name }) => isLong || SHORT.has(name))
    .map((point) => ({ ...point, persistence }));

function named(points) {
  return points.map(([name, point]) => ({ name, ...point }));
}
