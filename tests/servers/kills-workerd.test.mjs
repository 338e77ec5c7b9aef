import { testKills } from './kills.mjs';

testKills('workerd');
