import { testKills } from './kills.mjs';

testKills('postgres');
