import test from 'node:test';
import { conformance } from 'rethread/testing';
import { MemoryLogStore } from './memory-log-store.js';

const store = new MemoryLogStore();
for (const { name, run } of conformance(() => store)) test(name, run);
