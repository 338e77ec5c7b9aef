// `rethread/fetch` as its users write it.

import { repairing, RethreadError, type RepairInfo, type RepairingOptions } from "../../js/fetch.js";
import { repair, StreamAssembler, validate } from "../../js/formats-api.js";

const told: RepairInfo[] = [];
const options: RepairingOptions = {
  fetch: globalThis.fetch,
  dialect: ({ url, body }) => (url.includes("/llm") && "messages" in body ? "anthropic" : null),
  onRepair: (info) => told.push(info),
  mode: "report",
  danglingCalls: "omit",
  danglingText: "cut off",
};
export const plain: typeof globalThis.fetch = repairing();
export const gateway: typeof globalThis.fetch = repairing({ dialect: "openai-chat" });
export const observed = repairing(options);
export const codes = () =>
  told.flatMap(({ url, dialect, report }) => report.map(({ code }) => `${url} ${dialect} ${code}`));

export async function rejected(body: string): Promise<string> {
  try {
    await repairing({ mode: "reject" })("https://api.openai.com/v1/chat/completions", { method: "POST", body });
    return "sent";
  } catch (error) {
    return error instanceof RethreadError ? error.code : "failed";
  }
}
export const formats = [
  repair("{}", "gemini").body,
  validate({}, "mistral"),
  new StreamAssembler("anthropic").finish().text,
];

// @ts-expect-error no such mode
repairing({ mode: "mend" });
// @ts-expect-error no such dialect
repairing({ dialect: "morse" });
