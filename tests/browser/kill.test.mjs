// Kills: Chromium gets SIGKILL at every point of a run of three tools, and the next one finishes the run.
// Here up to the first answer; kill-tools, kill-rest and kill-rerun go on from there, so that no file takes too long.
//
// RETHREAD_KILL_REPEATS: how often each point (2, in the long mode 5). RETHREAD_KILL_POINTS: a pattern of names.
// RETHREAD_KILL_LANES: browsers at once (2).
// RETHREAD_KILL_TOGETHER: runs, each at its own point, that die of one kill (6).

import { killTests } from './kill/matrix.mjs';
import { answer } from './kill/points.mjs';

killTests('the first answer', answer);
