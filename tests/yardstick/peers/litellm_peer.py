"""litellm: messages in OpenAI's format for every provider, repaired as `modify_params` does."""

import json
import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
import litellm  # noqa: E402

litellm.modify_params = True
litellm.suppress_debug_info = True
litellm.telemetry = False


class Cannot(Exception):
    pass


def chat_messages(messages):
    out = []
    for message in messages:
        role, parts = message["role"], message["parts"]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        if role == "tool":
            out += [{"role": role, "tool_call_id": part["id"], "content": part["text"]} for part in parts]
        elif role != "assistant":
            content = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
            out.append({"role": role, "content": content})
        else:
            out.append(assistant(parts, texts))
    return out


def arguments(call):
    return call["input"] if isinstance(call["input"], str) else json.dumps(call["input"])


def assistant(parts, texts):
    message = {"role": "assistant", "content": "".join(texts) if texts else None}
    calls = [part for part in parts if part["type"] == "call"]
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments(call)},
                **({"provider_specific_fields": {"thought_signature": call["signature"]}} if "signature" in call else {}),
            }
            for call in calls
        ]
    reasoning = [part for part in parts if part["type"] == "reasoning"]
    if reasoning:
        message["reasoning_content"] = "".join(part["text"] for part in reasoning)
    signed = [part for part in reasoning if "signature" in part or "redacted" in part]
    if signed:
        message["thinking_blocks"] = [
            {"type": "redacted_thinking", "data": part["redacted"]}
            if "redacted" in part
            else {"type": "thinking", "thinking": part["text"], "signature": part["signature"]}
            for part in signed
        ]
    return message


def response_items(messages):
    items = []
    for message in messages:
        for part in message["parts"]:
            own = {"id": part["itemId"]} if "itemId" in part else {}
            if part["type"] == "call":
                items.append(
                    {**own, "type": "function_call", "call_id": part["id"], "name": part["name"], "arguments": arguments(part)}
                )
            elif part["type"] == "result":
                items.append({"type": "function_call_output", "call_id": part["id"], "output": part["text"]})
            elif part["type"] == "reasoning":
                sealed = {"encrypted_content": part["encrypted"]} if "encrypted" in part else {}
                summary = [{"type": "summary_text", "text": part["text"]}] if part["text"] else []
                items.append({**own, "type": "reasoning", "summary": summary, **sealed})
            else:
                kind = "output_text" if message["role"] == "assistant" else "input_text"
                content = [{"type": kind, "text": part["text"]}]
                items.append({**own, "type": "message", "role": message["role"], "content": content})
    return items


def settings_of(dialect, lane, model):
    """The model and the address of a format."""
    return {
        "openai-chat": {
            "model": f"{'deepseek' if model.startswith('deepseek') else 'openai'}/{model}",
            "api_base": f"{lane}/v1",
        },
        "openai-responses": {"model": f"openai/{model}", "api_base": f"{lane}/v1"},
        "anthropic": {"model": f"anthropic/{model}", "api_base": lane},
        "gemini": {"model": f"gemini/{model}", "api_base": f"{lane}/v1beta"},
        "mistral": {"model": f"mistral/{model}", "api_base": f"{lane}/mistral/v1"},
        "bedrock": {
            "model": f"bedrock/converse/{model}",
            "aws_bedrock_runtime_endpoint": lane,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region_name": "us-east-1",
        },
    }[dialect]


def messages_of(vector):
    given = vector["given"]
    if "thinking" in given and "type" not in given["thinking"]:
        raise Cannot("its types want the kind of thinking")
    # Its own format is OpenAI's: a body of that dialect goes in as it is.
    if vector["dialect"] == "openai-chat":
        body = given["body"]
        extra = {key: body[key] for key in ("tools", "tool_choice", "thinking") if key in body}
        others = {key: value for key, value in body.items() if key not in ("model", "messages", *extra)}
        if others:
            extra["extra_body"] = others
        if not isinstance(given["body"].get("messages"), list):
            raise Cannot("the conversation is no list")
        return given["body"]["messages"], extra
    if "messages" not in given:
        raise Cannot(f"only a body can say it: {given['onlyAsBody']}")
    # A model that it does not know may think, too.
    thinking = {"thinking": given["thinking"], "allowed_openai_params": ["thinking"]} if "thinking" in given else {}
    return chat_messages(given["messages"]), thinking


def send(vector, lane):
    given, dialect = vector["given"], vector["dialect"]
    settings = {**settings_of(dialect, lane, given["model"]), "api_key": "test-key", "num_retries": 0, "max_retries": 0}
    if dialect == "bedrock":
        del settings["api_key"]
    if dialect == "openai-responses":
        if "messages" not in given:
            raise Cannot(f"only a body can say it: {given['onlyAsBody']}")
        del settings["num_retries"]
        tools = [
            {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}} for name in given["tools"]
        ]
        litellm.responses(input=response_items(given["messages"]), **({"tools": tools} if tools else {}), **settings)
        return
    messages, extra = messages_of(vector)
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in given.get("tools", [])
    ]
    if tools:
        extra.setdefault("tools", tools)
    if dialect == "anthropic":
        extra["max_tokens"] = 4096
    litellm.completion(messages=messages, **extra, **settings)


def main():
    url = os.environ["YARDSTICK_URL"]
    with open(os.environ["YARDSTICK_VECTORS"], encoding="utf-8") as file:
        vectors = json.load(file)
    for one in vectors:
        line = {"id": one["vector"]["id"]}
        try:
            send(one["vector"], f"{url}/lane/{one['lane']}")
        except Cannot as error:
            line["cannot"] = str(error)
        except Exception as error:  # noqa: BLE001
            line["threw"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
        sys.stdout.write(f"\nyardstick {json.dumps(line)}\n")
        sys.stdout.flush()


main()
