import { conformance } from 'rethread/testing';
import { test } from 'vitest';
import { MemoryLogStore } from './memory-log-store.js';

const store = new MemoryLogStore();
for (const { name, run } of conformance(() => store)) test(name, run);
