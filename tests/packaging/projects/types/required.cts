import rethread = require("rethread");
import { drive } from "rethread/host";
import { repairing } from "rethread/fetch";

export async function chat(url: string): Promise<string | null | undefined> {
  const session = await (await rethread.open({ store: "memory" })).session("types");
  const run = await session.run({ input: "hi", provider: { dialect: "anthropic", url, params: {} } });
  return (await drive(run, {}).result).text;
}
export const send: typeof fetch = repairing();
// @ts-expect-error no such dialect
rethread.validate({}, "morse");
