"""An agent in one command, which may be killed at any time and started again: as agent.mjs, with the world `stored` under wasmtime.

python3 agent.py STORE.jsonl http://127.0.0.1:8787 "What is the weather in Bern?"

It keeps its conversation in a bucket of its own wasi:keyvalue, which is a file. With NO_SWAP in the environment the bucket has no atomics.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

from file_keyvalue import FileBucket, define_keyvalue
from stored_host import StoredHost, record

COMPONENT = Path(__file__).parents[3] / "dist/component/stored.wasm"
SESSION = "chat"

path, base, text = sys.argv[1:4]


def post(at, body):
    with urllib.request.urlopen(f"{base}{at}", json.dumps(body).encode()) as response:
        return json.load(response)


def weather(given, call):
    report = {"name": "weather", "callId": getattr(call, "call-id"), "invocationId": getattr(call, "invocation-id"), "arguments": given}
    post("/control/tool", {**report, "phase": "start"})
    return post("/control/tool", {**report, "phase": "end"})["result"]


REQUEST = {
    "provider": {"dialect": "openai-chat", "url": f"{base}/v1/chat/completions", "params": {"model": "gpt-4.1", "stream": True}},
    "tools": {
        "weather": {
            "description": "The weather in a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    },
}


def messages(host):
    return json.loads(host.command("messages", record(session=SESSION, cursor=None, limit=None, branch=None)).items)


bucket = FileBucket(path)
host = StoredHost(COMPONENT, lambda linker: define_keyvalue(linker, bucket, swaps="NO_SWAP" not in os.environ), {"weather": weather})
host.command("open-session", record(session=SESSION, options=json.dumps({"persistence": "result"})))
pending = json.loads(host.command("pending-runs", SESSION))
if pending:
    run = host.command("resume", record(session=SESSION, run=pending[0]["id"], snapshot=None, options=json.dumps(REQUEST)))
elif not messages(host):
    run = host.command("run", record(session=SESSION, options=json.dumps({**REQUEST, "input": text})))
else:
    run = None
if run:
    state = host.finished(run)
    if state.status != "finished":
        sys.exit(state.result)
print(json.dumps(messages(host)))
host.command("close")
