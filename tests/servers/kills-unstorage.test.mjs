import { testKills } from './kills.mjs';

testKills('unstorage');
