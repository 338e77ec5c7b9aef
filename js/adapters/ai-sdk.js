// `rethread/ai-sdk`: messages of the `ai` package, a transport for its `useChat` that keeps a session, and loops of
// `streamText` and `generateText` that are journaled.

export { RethreadError } from '../error.js';
export { awaitsAnswer } from './ai-sdk/awaits-answer.js';
export { durableTools } from './ai-sdk/durable-tools.js';
export { historyMiddleware } from './ai-sdk/history-middleware.js';
export { loadUIMessages } from './ai-sdk/load.js';
export { fromModelMessages } from './ai-sdk/model-messages.js';
export { toUIMessages } from './ai-sdk/read.js';
export { resumeUIMessages } from './ai-sdk/resume.js';
export { chatHandler, sessionTransport } from './ai-sdk/session-transport.js';
export { withSession } from './ai-sdk/transport.js';
export { fromUIMessages } from './ai-sdk/write.js';
