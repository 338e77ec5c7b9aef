import { open, type Finding, type RunResult } from "rethread";
import { drive, type DriveOptions } from "rethread/host";
import { repairing, type RepairInfo } from "rethread/fetch";
import { convert } from "rethread/formats";
import { validate } from "rethread/slim";

export async function chat(url: string, options: DriveOptions): Promise<RunResult> {
  await using rethread = await open({ store: "memory" });
  using session = await rethread.session("types", { onStop: "keep" });
  const run = await session.run({ input: "hi", provider: { dialect: "anthropic", url, params: {} } });
  return drive(run, options).result;
}
export const findings: Finding[] = validate("{}", "gemini");
// @ts-expect-error no such dialect
validate({}, "morse");
export const told: RepairInfo[] = [];
export const send: typeof fetch = repairing({ onRepair: (info) => told.push(info) });
export const other: string = convert("{}", "gemini", "mistral").body;
// @ts-expect-error no such mode
repairing({ mode: "mend" });
