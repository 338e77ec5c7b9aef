"""A host of the world `stored` in Python: it owns the clock, the randomness, the network and the tools, and gives the component a bucket."""

import http.client
import json
import os
import time
from urllib.parse import urlsplit

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker, Record, Variant


def record(**members):
    made = Record()
    for name, value in members.items():
        setattr(made, name.replace("_", "-"), value)
    return made


class CommandFailed(Exception):
    def __init__(self, error):
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code


class StoredHost:
    """One open engine. `tools` are functions by name."""

    def __init__(self, path, define_imports, tools, *, exclusive=True, name="chats"):
        config = Config()
        # Compiled once, and not at each start of the process.
        config.cache = True
        engine = Engine(config)
        self.store = Store(engine)
        linker = Linker(engine)
        define_imports(linker)
        self.instance = linker.instantiate(self.store, Component.from_file(engine, path))
        self.sessions = self.instance.get_export_index(self.store, "rethread:history/sessions@0.1.0")
        self.functions = {}
        self.tools = tools
        self.effects = {}
        settings = record(
            name=name,
            exclusive=exclusive,
            lease_ms=None,
            store_timeout_ms=None,
            replay=None,
            channels=None,
            # The store is the bucket: this is ignored.
            store=record(max_value_bytes=1 << 20, durable=True),
        )
        self.engine = self.taken(self.call("[static]engine.open", settings, self.moment()))

    def moment(self):
        return record(now=int(time.time() * 1000), random=os.urandom(32))

    def call(self, name, *arguments):
        if name not in self.functions:
            index = self.instance.get_export_index(self.store, name, self.sessions)
            self.functions[name] = self.instance.get_func(self.store, index)
        return self.functions[name](self.store, *arguments)

    def method(self, name, *arguments):
        return self.taken(self.call(f"[method]engine.{name}", self.engine, *arguments))

    @staticmethod
    def taken(result):
        """What a function returned, or its error as an exception. wasmtime wraps a result where types alone do not tell."""
        if isinstance(result, Variant) and result.tag in ("ok", "err"):
            if result.tag == "err":
                raise CommandFailed(result.payload)
            return result.payload
        if isinstance(result, Record) and set(vars(result)) == {"code", "message"}:
            raise CommandFailed(result)
        return result

    def command(self, tag, payload=None):
        """Performs a command and returns its outcome. Whatever else the engine asks for meanwhile is done, too."""
        operation = self.method("begin", Variant(tag, payload))
        while True:
            for ended in self.step().ended:
                if ended.operation == operation:
                    return self.taken(ended.outcome).payload

    def finished(self, run):
        """Drives a run until it is over, or waits for a person."""
        while True:
            state = self.method("run-state", run)
            if state.status != "running":
                return state
            self.step()

    def step(self):
        """Lets the engine do what it can, and does what it asks for. Sleeps if it asks for nothing."""
        progress = self.method("step", self.moment())
        for effect in progress.opened:
            self.effects[effect.id] = effect.kind
        for effect in progress.closed:
            self.effects.pop(effect, None)
        started = [(effect, self.effects.pop(effect)) for effect in getattr(progress, "may-run")]
        for effect, kind in started:
            self.run_tool(effect, kind.payload)
        for effect, kind in list(self.effects.items()):
            self.perform(effect, kind)
        if not progress.opened and not started and not progress.ended:
            wake_at = getattr(progress, "wake-at")
            time.sleep(0.001 if wake_at is None else min(max(wake_at / 1000 - time.time(), 0), 0.05))
        return progress

    def perform(self, effect, kind):
        if kind.tag == "run-tool":
            # Executed when its start is stored: then `may-run` has it.
            if not hasattr(kind, "announced"):
                kind.announced = True
                self.answer(effect, "started")
            return
        self.effects.pop(effect)
        if kind.tag == "wait":
            time.sleep(kind.payload.ms / 1000)
            self.answer(effect, "waited")
        else:
            self.call_model(effect, kind.payload)

    def answer(self, effect, tag, payload=None):
        self.method("answer", effect, Variant(tag, payload))

    def call_model(self, effect, call):
        """Sends a request, and passes the response on as it arrives. Credentials would be added here."""
        url = urlsplit(call.url)
        connection = http.client.HTTPConnection(url.netloc)
        sent = None
        try:
            target = f"{url.path}?{url.query}" if url.query else url.path
            # A `get` has no body.
            connection.request(call.method.upper(), target, call.body or None, dict(call.headers))
            response = connection.getresponse()
            sent = True
            headers = [(name.lower(), value) for name, value in response.getheaders()]
            self.answer(effect, "response-started", record(status=response.status, headers=headers))
            while piece := response.read1(65536):
                self.method("feed", effect, piece)
            self.answer(effect, "response-end")
        except OSError as error:
            self.answer(effect, "failed", record(code=None, message=str(error), sent=sent))
        finally:
            connection.close()

    def run_tool(self, effect, call):
        try:
            content, is_error = self.tools[call.name](json.loads(call.arguments), call), False
        except Exception as error:  # The model is told.
            content, is_error = str(error), True
        self.answer(effect, "tool-result", record(content=json.dumps(content), is_error=is_error))
