// Every SDK takes what `repairing()` gives, by its own types.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { Mistral } from "@mistralai/mistralai";
import { HTTPClient } from "@mistralai/mistralai/lib/http.js";
import OpenAI from "openai";
import { repairing } from "../../js/fetch.js";

export const clients = [
  new OpenAI({ fetch: repairing() }),
  new Anthropic({ fetch: repairing() }),
  new GoogleGenAI({ apiKey: "", httpOptions: { fetch: repairing() } }),
  new Mistral({ httpClient: new HTTPClient({ fetcher: repairing() }) }),
  createOpenAI({ fetch: repairing() }),
  createAnthropic({ fetch: repairing() }),
  new ChatOpenAI({ configuration: { fetch: repairing() } }),
  new ChatAnthropic({ clientOptions: { fetch: repairing() } }),
];
