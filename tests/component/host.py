"""What the component answers under wasmtime. In and out as tests/component/answers.rs has it; the argument is the component.

The linker is empty: a component that imported anything would not start here.
"""

import json
import struct
import sys

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record

DIALECTS = ["openai-chat", "openai-responses", "anthropic", "gemini", "mistral"]
KEYS = {"severity": "severity", "code": "code", "path": "path", "message-id": "messageId", "call-id": "callId", "action": "action", "message": "message"}


def record(**members):
    made = Record()
    for name, value in members.items():
        setattr(made, name.replace("_", "-"), value)
    return made


OPTIONS = [None, record(dangling_calls="omit", dangling_text=None), record(dangling_calls="synthesize", dangling_text="é cut")]

engine = Engine()
store = Store(engine)
instance = Linker(engine).instantiate(store, Component.from_file(engine, sys.argv[1]))
wire = instance.get_export_index(store, "rethread:history/wire@0.1.0")
validate, repair, convert = (instance.get_func(store, instance.get_export_index(store, name, wire)) for name in ("validate", "repair", "convert"))


def say(answer):
    sys.stdout.buffer.write(struct.pack("<I", len(answer)) + answer)


def findings(report):
    told = [{key: getattr(finding, name) for name, key in KEYS.items() if getattr(finding, name) is not None} for finding in report]
    say(json.dumps(told).encode())


def answer(result):
    if result.tag == "ok":
        say(bytes(result.payload.body))
        findings(result.payload.report)
    else:
        say(b"")
        say(json.dumps({"code": result.payload.code, "message": result.payload.message}).encode())


given = sys.stdin.buffer.read()
at = 0
while at < len(given):
    dialect, target, options, length = struct.unpack_from("<BBBI", given, at)
    body = given[at + 7 : at + 7 + length]
    at += 7 + length
    findings(validate(store, body, DIALECTS[dialect]))
    answer(repair(store, body, DIALECTS[dialect], OPTIONS[options]))
    answer(convert(store, body, DIALECTS[dialect], DIALECTS[target], OPTIONS[options]))
