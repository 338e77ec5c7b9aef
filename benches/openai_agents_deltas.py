"""The deltas of service-deltas.js by the tracker of the OpenAI Agents SDK for Python, as JSON lines of milliseconds.

    python -m pip install openai-agents==0.22.0
    python benches/openai_agents_deltas.py newest|whole TURNS
"""

import json
import sys
import time

from agents import Agent
from agents.items import MessageOutputItem, ModelResponse, ToolCallItem, ToolCallOutputItem
from agents.run_internal.oai_conversation import OpenAIServerConversationTracker
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

AGENT = Agent(name="a")


def items_of(turn):
    call = ResponseFunctionToolCall(
        type="function_call", id=f"fc_{turn}", call_id=f"call_{turn}", name="look", arguments=f'{{"n":{turn}}}', status="completed"
    )
    output = {"type": "function_call_output", "call_id": f"call_{turn}", "output": f'{{"n":{turn}}}'}
    text = ResponseOutputText(type="output_text", text=f"Answer {turn}", annotations=[])
    message = ResponseOutputMessage(type="message", id=f"msg_{turn}", role="assistant", status="completed", content=[text])
    return (
        ToolCallItem(agent=AGENT, raw_item=call),
        ToolCallOutputItem(agent=AGENT, raw_item=output, output=output["output"]),
        MessageOutputItem(agent=AGENT, raw_item=message),
    )


def response(turn, item):
    return ModelResponse(output=[item.raw_item], usage=Usage(), response_id=f"resp_{turn}")


def deltas(turns, is_whole):
    tracker = OpenAIServerConversationTracker(conversation_id="conv_1")
    items, took, sent = [], 0.0, 0

    def prepare(newest):
        nonlocal took
        start = time.perf_counter()
        prepared = tracker.prepare_input("Question", items if is_whole else newest)
        tracker.mark_input_as_sent(prepared)
        took += time.perf_counter() - start
        return len(prepared)

    for turn in range(turns):
        call, output, message = items_of(turn)
        prepare([])
        start = time.perf_counter()
        tracker.track_server_items(response(turn, call))
        took += time.perf_counter() - start
        items.extend([call, output])
        sent = prepare([call, output])
        start = time.perf_counter()
        tracker.track_server_items(response(turn, message))
        took += time.perf_counter() - start
        items.append(message)
    assert sent == 1, sent
    return took * 1000


print(json.dumps(deltas(int(sys.argv[2]), sys.argv[1] == "whole")))
