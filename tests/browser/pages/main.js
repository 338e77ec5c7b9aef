// Puts the package where a test's functions find it.

import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { caught, isRight } from '/scenarios/kit.mjs';
import * as dialects from '/scenarios/dialects.mjs';
import * as faults from '/scenarios/faults.mjs';
import * as input from '/scenarios/input.mjs';
import * as replay from '/scenarios/replay.mjs';
import * as secrets from '/scenarios/secrets.mjs';

Object.assign(globalThis, {
  rethread,
  drive,
  caught,
  isRight,
  scenarios: { dialects, faults, input, replay, secrets },
});
globalThis.settle();
