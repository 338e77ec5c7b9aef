// Kills between and inside the two tools of the first round.

import { killTests } from './kill/matrix.mjs';
import { tools } from './kill/points.mjs';

killTests('the first round', tools);
