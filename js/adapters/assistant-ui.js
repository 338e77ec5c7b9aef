// `rethread/assistant-ui`: sessions as the threads of assistant-ui, and their history.

export { RethreadError } from '../error.js';
export { threadHistory } from './assistant-ui/thread-history.js';
export { threadList } from './assistant-ui/thread-list.js';
