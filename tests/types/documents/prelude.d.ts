// Names that the pages use without declaring them: what the reader's own program has. A relative import of a page means
// these, too.

import type { ChatModelAdapter } from "@assistant-ui/core";
import type { ModelMessage, Tool as AiTool, UIMessage, wrapLanguageModel } from "ai";
import type OpenAI from "openai";
import type { Driver } from "unstorage";
import type {
  Handoff,
  LogStore,
  MessageWithCalls,
  ProviderRequest,
  Rethread,
  Run,
  RunRequest,
  Session,
  Tool,
  Tools,
  WireBody,
} from "rethread";
import type { DriveOptions } from "rethread/host";
import type { InterruptedToolCall } from "rethread/once";

export { open } from "rethread";
export { drive, isDriven } from "rethread/host";

export const rethread: Rethread;
export const store: Rethread;
export const otherStore: Rethread;
export const session: Session;
export const run: Run;
export const id: string;
export const provider: ProviderRequest;
export const tools: Tools;
export const input: string;
export const question: string;
export const request: Omit<RunRequest, "input">;
export const headers: Record<string, string>;
export const options: DriveOptions;
export const invoice: Tool;
export const billing: Handoff;
export const imported: WireBody;

// A page with the AI SDK.
export const saved: UIMessage[];
export const history: ModelMessage[];
export const show: (messages: UIMessage[]) => void;
// A server with it.
export const model: Parameters<typeof wrapLanguageModel>[0]["model"];
export const chatTools: { look: AiTool<{ of: number }, number> };

// A program with OpenAI's SDK.
export const openai: OpenAI;
export const toolDefinitions: OpenAI.ChatCompletionTool[];
export const execute: (
  calls: OpenAI.ChatCompletionMessageToolCall[],
) => Promise<OpenAI.ChatCompletionToolMessageParam[]>;
export const url: string;
export const base: string;
export const outputText: (response: unknown) => string;

// Tools of a loop of your own.
export const sendMail: (mail: { to: string; text?: string; invoice?: string }) => Promise<string>;
export const payInvoice: (invoice: { to: string }) => Promise<string>;
export const lookUp: (query: { text: string }) => Promise<string[]>;
export const askSomebody: (call: InterruptedToolCall) => Promise<"report" | "rerun" | { result: string }>;

// What a tool calls, and where a server has its key.
export const signIn: (name: string, password: string) => Promise<string>;
export const apiKey: () => Promise<string>;
export const payBack: (order: string, key: string) => Promise<string>;
export const mailOwner: (question: string, link: string) => Promise<void>;

export const search: (input: MessageWithCalls[]) => Promise<string>;
export const showForm: (question: unknown) => Promise<unknown>;
export const auditLog: { insert(session: string, messages: MessageWithCalls[]): Promise<void> };
export const chats: {
  messages(session: string): Promise<MessageWithCalls[]>;
  upsert(session: string, messages: MessageWithCalls[]): Promise<void>;
};
export const withoutPhoneNumbers: (items: unknown) => unknown;
export const queue: { add(id: string, job: unknown): Promise<void> };

// Clients and bindings of databases.
export const database: object;
export const pool: object;
export const client: object;
export const driver: Driver;
export const ctx: { storage: object };
export const env: { DB: object; CHATS: object };
export class MyStore implements LogStore {
  constructor(name: string);
  capabilities: LogStore["capabilities"];
  head: LogStore["head"];
  append: LogStore["append"];
  read: LogStore["read"];
  sessions: LogStore["sessions"];
  invocations: LogStore["invocations"];
  deleteSession: LogStore["deleteSession"];
}
export const threadModel: ChatModelAdapter;
