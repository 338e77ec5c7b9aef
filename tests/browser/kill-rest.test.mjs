// Kills from the second call to the save.

import { killTests } from './kill/matrix.mjs';
import { rest } from './kill/points.mjs';

killTests('the second round and the end', rest);
