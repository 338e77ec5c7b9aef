"""Opens a session in the world `engine` under wasmtime, whose linker is empty, and prints the operations of the store that it asks for."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from stored_host import StoredHost, record  # noqa: E402
from wasmtime.component import Variant  # noqa: E402

host = StoredHost(sys.argv[1], lambda _linker: None, {})
operation = host.method("begin", Variant("open-session", record(session="s", options='{"title":"Wasmtime"}')))
asked = []
while True:
    progress = host.method("step", host.moment())
    for ended in progress.ended:
        info = host.taken(ended.outcome).payload
        print(json.dumps({"asked": asked, "session": info.id, "isSame": ended.operation == operation}))
        sys.exit()
    for effect in progress.opened:
        asked.append(effect.kind.payload.tag)
        # There is no such session.
        host.answer(effect.id, "store", Variant("head", None))
