// The types of `rethread/openai-agents`.

import type {
  Agent,
  AgentInputItem,
  ModelProvider,
  OpenAIResponsesCompactionArgs,
  OpenAIResponsesCompactionOwnershipAwareSession,
  RequestUsage,
  RunContext,
  Session as SdkSession,
  SessionHistoryRewriteArgs,
  SessionHistoryTransactionArgs,
} from "@openai/agents";
import type { Session } from "../types.js";

/** A session of rethread for `run(agent, input, { session })`, on any store. Items come back as they were, as JSON
 *  keeps them (bytes included). Rejects with the errors of `Session.append`. */
export interface AgentsSession extends SdkSession {
  readonly acceptsRunContext: true;
  /** The newest items in chronological order; more than `limit` where a result needs its call, a call the others of
   *  its answer, or either the reasoning before it. A result without its call is left out. With the context of a run, a
   *  call without a result that no run has stored is followed by one that says that it may or may not have run. */
  getItems(limit?: number, runContext?: RunContext<any>): Promise<AgentInputItem[]>;
  /** One append: of a run with its context, of an import without. `invalid_input` for a message of another format. */
  addItems(items: AgentInputItem[], runContext?: RunContext<any>): Promise<void>;
  /** Removes the last item and returns it. It is erased from the session (`Session.deleteMessages`). */
  popItem(): Promise<AgentInputItem | undefined>;
  /** One append. A transaction that repeats an operation does nothing; another one with its id, or a suffix that is
   *  not that of the history, is `conflict` and changes nothing. What is replaced is erased. */
  applyHistoryTransaction(args: SessionHistoryTransactionArgs, runContext?: RunContext<any>): Promise<void>;
  applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void>;
  replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void>;
  prepareHistoryItemsForPersistenceComparison(items: AgentInputItem[]): AgentInputItem[];
  /** Returns a copy of the agent, and of the agents that it hands off to, whose questions, answers with calls, and
   *  results are stored as they come; the SDK stores a turn when it is over. After a crash `run(copy, [], { session
   *  })` goes on: no stored result is lost, and no function tool that was started runs again. A call whose process died
   *  in its tool gets the result "interrupted, may have run". Tools for shell, computer and patches, tools of MCP
   *  servers and `handoff(…)` objects are not watched: they may run again, and their results are stored with the next
   *  request. An agent with a model's name needs `modelProvider`. One durable agent has one session: a run of it with
   *  another `agentsSession` rejects with `config_invalid`, and nothing of it is stored here or sent; so does one
   *  without a session, unless this one is empty. Pass a `RunState` with the session of its run: another one is
   *  noticed only if an approved tool's call is not in this one. */
  durable<A extends Agent<any, any>>(agent: A, options?: { modelProvider?: ModelProvider }): A;
}

/** Shortens the items of the history, after each turn. Returns null to leave them. */
export type CompactItems = (
  items: AgentInputItem[],
  args: OpenAIResponsesCompactionArgs,
) => Promise<{ items: AgentInputItem[]; usage: RequestUsage } | null>;

export declare function agentsSession(session: Session): AgentsSession;
/** With `compact`, the SDK's runner compacts the history after a turn, if the run has read all of it and nobody else
 *  has written since. The items that were compacted stay in the session and are shown by its views. */
export declare function agentsSession(
  session: Session,
  options: { compact?: CompactItems },
): AgentsSession & OpenAIResponsesCompactionOwnershipAwareSession;
