"""pydantic-ai: a message history, on the model class of each format."""

import asyncio
import base64
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["AWS_MAX_ATTEMPTS"] = "1"

from anthropic import AsyncAnthropic  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from pydantic_ai import Agent, Tool  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models.anthropic import AnthropicModel  # noqa: E402
from pydantic_ai.models.bedrock import BedrockConverseModel  # noqa: E402
from pydantic_ai.models.google import GoogleModel  # noqa: E402
from pydantic_ai.models.mistral import MistralModel  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: E402
from pydantic_ai.providers.bedrock import BedrockProvider  # noqa: E402
from pydantic_ai.providers.google import GoogleProvider  # noqa: E402
from pydantic_ai.providers.mistral import MistralProvider  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

KEY = "test-key"


class Cannot(Exception):
    pass


def openai(lane):
    return OpenAIProvider(openai_client=AsyncOpenAI(api_key=KEY, base_url=f"{lane}/v1", max_retries=0))


def model_of(dialect, lane, model):
    if dialect == "openai-chat":
        return OpenAIChatModel(model, provider=openai(lane))
    if dialect == "openai-responses":
        return OpenAIResponsesModel(model, provider=openai(lane))
    if dialect == "anthropic":
        client = AsyncAnthropic(api_key=KEY, base_url=lane, max_retries=0)
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    if dialect == "gemini":
        return GoogleModel(model, provider=GoogleProvider(api_key=KEY, base_url=lane))
    if dialect == "mistral":
        return MistralModel(model, provider=MistralProvider(api_key=KEY, base_url=f"{lane}/mistral"))
    provider = BedrockProvider(
        region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test", base_url=lane
    )
    return BedrockConverseModel(model, provider=provider)


def names_of(messages):
    return {
        part["id"]: part["name"] for message in messages for part in message["parts"] if part["type"] == "call" or "name" in part
    }


def thinking(part, system):
    signature = part.get("signature") or part.get("encrypted") or part.get("redacted")
    own = {"id": "redacted_thinking"} if "redacted" in part else {"id": part.get("itemId")}
    if system == "openai" and "itemId" not in part:
        own = {"id": "reasoning_content"}
    return ThinkingPart(content=part["text"], signature=signature, provider_name=system, **own)


def response_part(part, system):
    item = {"id": part["itemId"], "provider_name": system} if "itemId" in part else {}
    if part["type"] == "text":
        return TextPart(content=part["text"], **item)
    if part["type"] == "reasoning":
        return thinking(part, system)
    if "signature" in part:
        try:
            base64.b64decode(part["signature"], validate=True)
        except ValueError:
            raise Cannot("its signatures are base64") from None
        item = {"provider_name": system, "provider_details": {"thought_signature": part["signature"]}}
    return ToolCallPart(tool_name=part["name"], args=part["input"], tool_call_id=part["id"], **item)


def history_of(messages, model):
    names = names_of(messages)
    history = []
    for message in messages:
        role, parts = message["role"], message["parts"]
        if role == "assistant":
            out = [response_part(part, model.system) for part in parts]
            history.append(ModelResponse(parts=out, model_name=model.model_name, provider_name=model.system))
            continue
        if role == "tool":
            out = [
                ToolReturnPart(
                    tool_name=names.get(part["id"], "get_weather"),
                    content=part["text"],
                    tool_call_id=part["id"],
                    outcome="failed" if part.get("isError") else "success",
                )
                for part in parts
            ]
        elif role == "system":
            out = [SystemPromptPart(content=part["text"]) for part in parts]
        else:
            out = [UserPromptPart(content=part["text"]) for part in parts]
        history.append(ModelRequest(parts=out))
    return history


async def send(vector, lane, ran):
    given, dialect = vector["given"], vector["dialect"]
    if "messages" not in given:
        raise Cannot(f"only a body can say it: {given['onlyAsBody']}")
    if "thinking" in given and "type" not in given["thinking"]:
        raise Cannot("its types want the kind of thinking")
    if given["messages"] and given["messages"][-1]["role"] == "assistant":
        if not any(part["type"] == "call" for part in given["messages"][-1]["parts"]):
            raise Cannot("a history that ends with an answer is finished, and nothing is sent")
    model = model_of(dialect, lane, given["model"])
    messages = given["messages"]
    prompt = None
    if messages and messages[-1]["role"] == "user":
        prompt = "".join(part["text"] for part in messages[-1]["parts"])
        messages = messages[:-1]

    def tool(**arguments):
        ran()
        return "RAN AGAIN"

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    tools = [Tool.from_schema(tool, name=name, description=name, json_schema=schema) for name in given["tools"]]
    agent = Agent(model, tools=tools, retries=0)
    settings = {"max_tokens": 4096, "anthropic_thinking": given["thinking"]} if "thinking" in given else None
    history = history_of(messages, model)
    # The documentation asks for this where a new prompt follows an answer with open calls.
    if prompt is not None:
        history = repair_messages(history)
    await agent.run(prompt, message_history=history, model_settings=settings)


def main():
    url = os.environ["YARDSTICK_URL"]
    with open(os.environ["YARDSTICK_VECTORS"], encoding="utf-8") as file:
        vectors = json.load(file)
    for one in vectors:
        line = {"id": one["vector"]["id"]}
        runs = []
        try:
            asyncio.run(send(one["vector"], f"{url}/lane/{one['lane']}", lambda: runs.append(1)))
        except Cannot as error:
            line["cannot"] = str(error)
        except Exception as error:  # noqa: BLE001
            line["threw"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
        if runs:
            line["tools"] = len(runs)
        sys.stdout.write(f"\nyardstick {json.dumps(line)}\n")
        sys.stdout.flush()


main()
