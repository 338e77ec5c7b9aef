// The SDKs' own named types, in and out. An interface has no index signature, so they are the ones that a looser type
// would refuse.

import type OpenAI from "openai";
import type {
  ChatCompletion,
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsNonStreaming,
} from "openai/resources/chat/completions";
import type {
  Response,
  ResponseCreateParams,
  ResponseCreateParamsNonStreaming,
} from "openai/resources/responses/responses";
import type Anthropic from "@anthropic-ai/sdk";
import type {
  Message,
  MessageCreateParams,
  MessageCreateParamsNonStreaming,
} from "@anthropic-ai/sdk/resources/messages";
import type { GoogleGenAI, GenerateContentParameters, GenerateContentResponse } from "@google/genai";
import type { ChatCompletionRequest } from "@mistralai/mistralai/models/components";
import {
  convert,
  repair,
  validate,
  type Bytes,
  type Finding,
  type JsonObject,
  type ProviderRequest,
  type RenderRequest,
  type RunRequest,
  type Session,
  type WireBody,
  type WireInput,
} from "rethread";

/** Fails to compile unless both are the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

// ---- what is repaired goes to the SDK that it came from

export async function chat(client: OpenAI, params: ChatCompletionCreateParamsNonStreaming): Promise<ChatCompletion> {
  const { body, report } = repair(params, "openai-chat");
  same<typeof body, ChatCompletionCreateParamsNonStreaming>(true);
  same<typeof report, Finding[]>(true);
  return client.chat.completions.create(body);
}

export async function responses(client: OpenAI, params: ResponseCreateParamsNonStreaming): Promise<Response> {
  return client.responses.create(repair(params, "openai-responses").body);
}

export async function messages(client: Anthropic, params: MessageCreateParamsNonStreaming): Promise<Message> {
  return client.messages.create(repair(params, "anthropic").body);
}

export async function contents(
  client: GoogleGenAI,
  params: GenerateContentParameters,
): Promise<GenerateContentResponse> {
  return client.models.generateContent(repair(params, "gemini").body);
}

// ---- unions of streamed and not, and every function that takes a body

export function unions(
  chat: ChatCompletionCreateParams,
  responses: ResponseCreateParams,
  messages: MessageCreateParams,
  gemini: GenerateContentParameters,
  mistral: ChatCompletionRequest,
): void {
  same<ReturnType<typeof repair<ChatCompletionCreateParams>>["body"], ChatCompletionCreateParams>(true);
  const findings: Finding[] = [
    validate(chat, "openai-chat"),
    validate(responses, "openai-responses"),
    validate(messages, "anthropic"),
    validate(gemini, "gemini"),
    validate(mistral, "mistral"),
  ].flat();
  console.log(
    findings,
    repair(responses, "openai-responses").body.model,
    repair(messages, "anthropic").body.max_tokens,
    repair(gemini, "gemini").body.contents,
    repair(mistral, "mistral").body.messages,
  );
  const converted = convert(chat, "openai-chat", "anthropic");
  same<typeof converted.body, WireBody>(true);
  const narrowed = converted.body as unknown as MessageCreateParams;
  const inputs: WireInput[] = [chat, responses, messages, gemini, mistral];
  console.log(narrowed.max_tokens, inputs);
}

export async function sessions(
  session: Session,
  chat: ChatCompletionCreateParams,
  responses: ResponseCreateParams,
  messages: MessageCreateParams,
  gemini: GenerateContentParameters,
): Promise<void> {
  await session.append(chat, "openai-chat");
  await session.append(responses, "openai-responses");
  await session.append(messages, "anthropic");
  await session.append(gemini, "gemini");
  const rendering: RenderRequest[] = [
    { dialect: "openai-chat", params: chat },
    { dialect: "openai-responses", params: responses },
    { dialect: "anthropic", params: messages },
    { dialect: "gemini", params: gemini },
    { dialect: "anthropic", input: messages },
  ];
  await session.render(rendering[0]!);
  const settings: Omit<MessageCreateParamsNonStreaming, "messages"> = { model: "m", max_tokens: 5 };
  const provider: ProviderRequest = { dialect: "anthropic", url: "https://example.com", params: settings };
  const request: RunRequest = { provider, input: messages };
  await session.run(request);
}

// ---- text, bytes, and what is no body

export function forms(given: string | Uint8Array | JsonObject): void {
  same<ReturnType<typeof repair<"{}">>["body"], string>(true);
  same<ReturnType<typeof repair<Buffer>>["body"], Bytes>(true);
  same<ReturnType<typeof convert<Uint8Array>>["body"], Bytes>(true);
  console.log(repair(given, "gemini").body, convert(given, "gemini", "mistral").body);
  const plain: object = {};
  console.log(validate(plain, "gemini"));
  // @ts-expect-error a list is no body
  validate([{ role: "user", content: "hi" }], "openai-chat");
  // @ts-expect-error nor are parts of a wrong kind an input
  const input: RunRequest["input"] = [{ type: "nonsense" }];
  // @ts-expect-error nor is a list `params`
  const params: RenderRequest["params"] = [];
  console.log(input, params);
}
