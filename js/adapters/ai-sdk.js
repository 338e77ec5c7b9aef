// `rethread/ai-sdk`: messages of the `ai` package, and a transport for its `useChat` that keeps a session.

export { RethreadError } from '../error.js';
export { loadUIMessages } from './ai-sdk/load.js';
export { toUIMessages } from './ai-sdk/read.js';
export { withSession } from './ai-sdk/transport.js';
export { fromUIMessages } from './ai-sdk/write.js';
