// The formats alone: a smaller wasm, without sessions and stores.
export { convert, init, repair, RethreadError, StreamAssembler, validate } from "./types.js";
export type {
  AssembledResponse, Dialect, Finding, RepairOptions, StreamEvent, ToolCall, Usage, WireBody, WireInput,
} from "./types.js";
