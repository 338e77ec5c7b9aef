// Packages of the pages that the tests install into the cache, or do not install: without types.

declare module "@langchain/langgraph";
declare module "@langchain/langgraph/prebuilt";
declare module "@langchain/langgraph-checkpoint-sqlite";
declare module "@mastra/core/tools";
declare module "@modelcontextprotocol/sdk/server/mcp.js";
declare module "@modelcontextprotocol/sdk/server/stdio.js";
declare module "@tanstack/ai-openai";
declare module "langchain";

// What a Worker imports from its platform, as far as the pages use it.
declare module "cloudflare:workers" {
  export class DurableObject {
    constructor(ctx: unknown, env: unknown);
    protected ctx: { storage: object; waitUntil(promise: Promise<unknown>): void };
  }
}
