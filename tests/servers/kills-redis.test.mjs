import { testKills } from './kills.mjs';

testKills('redis');
