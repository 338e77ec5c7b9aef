export { drive, isDriven } from "./types.js";
export type { DriveOptions } from "./types.js";
