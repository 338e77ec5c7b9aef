import { testKills } from './kills.mjs';

testKills('sqlite');
