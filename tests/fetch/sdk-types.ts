// Every SDK takes what `repairing()` gives, by its own types.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { Mistral } from "@mistralai/mistralai";
import { HTTPClient } from "@mistralai/mistralai/lib/http.js";
import { createOpenAI as createOpenAI2 } from "ai-sdk-openai-2";
import { createOpenAI as createOpenAI4 } from "ai-sdk-openai-4";
import Anthropic0 from "anthropic-sdk-0";
import { GoogleGenAI as GoogleGenAI2 } from "google-genai-2";
import { GoogleGenAI as GoogleGenAI3 } from "google-genai-3";
import OpenAI from "openai";
import OpenAI4 from "openai-4";
import OpenAI5 from "openai-5";
import OpenAI6 from "openai-6";
import OpenAI7 from "openai-7";
import { repairing } from "../../js/fetch.js";

export const clients = [
  new OpenAI({ fetch: repairing() }),
  new OpenAI4({ fetch: repairing() }),
  new OpenAI5({ fetch: repairing() }),
  new OpenAI6({ fetch: repairing() }),
  new OpenAI7({ fetch: repairing() }),
  new Anthropic({ fetch: repairing() }),
  new Anthropic0({ fetch: repairing() }),
  new GoogleGenAI({ apiKey: "", httpOptions: { fetch: repairing() } }),
  new GoogleGenAI2({ apiKey: "", httpOptions: { fetch: repairing() } }),
  new GoogleGenAI3({ apiKey: "", httpOptions: { fetch: repairing() } }),
  new Mistral({ httpClient: new HTTPClient({ fetcher: repairing() }) }),
  createOpenAI({ fetch: repairing() }),
  createOpenAI2({ fetch: repairing() }),
  createOpenAI4({ fetch: repairing() }),
  createAnthropic({ fetch: repairing() }),
  new ChatOpenAI({ configuration: { fetch: repairing() } }),
  new ChatAnthropic({ clientOptions: { fetch: repairing() } }),
];

// It is a `fetch` of the platform for its callers: what it returns is no `any`.
export const response: Promise<Response> = repairing()("https://example.com", { method: "POST", body: "{}" });
// @ts-expect-error: the response has no such member
export const missing = repairing()("https://example.com").then((answer) => answer.nothing);
