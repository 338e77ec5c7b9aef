// Kills while a tool may have run that says it may run again.

import { killTests } from './kill/matrix.mjs';
import { rerun } from './kill/points.mjs';

killTests('tools that may run again', rerun);
