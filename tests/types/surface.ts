// The JavaScript exports exactly what the types declare.

import type * as declared from "../../js/types.js";
import type * as declaredFormats from "../../js/formats-api.js";
import * as formats from "../../js/entry/formats-node.js";
import * as api from "../../js/api.js";
import type * as host from "../../js/host.js";

/** Fails to compile if `Exported` lacks a value that `Declared` has, or has it with another type. */
function exportsAll<Declared>(_exported: { [Name in keyof Declared]: Declared[Name] }): void {}
/** Fails to compile if `Exported` has a value that `Declared` does not. */
function exportsOnly<Declared>(_names: keyof Declared): void {}

// `RethreadError` is declared as a union by code, which no class can be.
exportsAll<Omit<typeof declared, "drive" | "isDriven" | "RethreadError">>(api);
exportsOnly<typeof declared>({} as keyof typeof api | keyof typeof host);
exportsAll<Omit<typeof declaredFormats, "RethreadError">>(formats);
exportsOnly<typeof declaredFormats>({} as keyof typeof formats);
