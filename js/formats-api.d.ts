// The types of `rethread/formats`: the wire formats in a smaller wasm, without sessions and stores.
export { convert, heal, init, repair, RethreadError, StreamAssembler, validate } from "./types.js";
export type {
  AssembledResponse,
  Converted,
  Dialect,
  ErrorCode,
  ErrorDetails,
  Finding,
  FindingCode,
  Healed,
  HealOptions,
  JsonObject,
  RepairOptions,
  Repaired,
  StreamEvent,
  ToolCall,
  Usage,
  WireBody,
  WireInput,
} from "./types.js";
