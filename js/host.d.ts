export { drive } from "./types.js";
export type { DriveOptions } from "./types.js";
