"""wasi:keyvalue over a file: every write is a line that is whole and on the disk. The bucket swaps, unless it is told not to."""

import base64
import json
import os

from wasmtime.component import Record, ResourceHost, ResourceType, Variant

BUCKET, CAS = 1, 2
KEYS_IN_PAGE = 500


class FileBucket:
    """Keys and values in memory, and a file with every write. Half a line at its end is cut off when it is opened."""

    def __init__(self, path):
        self.values = {}
        # How often each key was written: a swap compares it.
        self.versions = {}
        self.file = open(path, "ab+")
        self.file.seek(0)
        whole = 0
        for line in self.file:
            if not line.endswith(b"\n"):
                break
            key, value = json.loads(line)
            self.apply(key, None if value is None else base64.b64decode(value))
            whole += len(line)
        self.file.truncate(whole)

    def apply(self, key, value):
        self.versions[key] = self.versions.get(key, 0) + 1
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def write(self, key, value):
        line = json.dumps([key, None if value is None else base64.b64encode(value).decode()])
        self.file.write(line.encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.apply(key, value)


class Handles:
    """What the component holds: a number for each handle."""

    def __init__(self):
        self.held = {}
        self.last = 0

    def add(self, item):
        self.last += 1
        self.held[self.last] = item
        return self.last

    def drop(self, _store, number):
        self.held.pop(number, None)


def define_keyvalue(linker, bucket, *, swaps=True):
    """Defines the imports of the world `stored` in a linker. All names are one bucket."""
    handles = Handles()

    def of(store, handle):
        return handles.held[handle.to_host(store).rep]

    def own(store, item, kind):
        return ResourceHost.own(handles.add(item), kind).to_any(store)

    def get(store, handle, key):
        return of(store, handle).values.get(key)

    def write(store, handle, key, value=None):
        of(store, handle).write(key, value)

    def list_keys(store, handle, cursor):
        keys = sorted(of(store, handle).values)
        first = cursor or 0
        page = Record()
        page.keys = keys[first : first + KEYS_IN_PAGE]
        page.cursor = first + KEYS_IN_PAGE if len(keys) > first + KEYS_IN_PAGE else None
        return page

    def new_cas(store, handle, key):
        # Asked for first: wasmtime wants a borrowed handle to be looked at before the call ends.
        of_bucket = of(store, handle)
        if not swaps:
            return Variant("other", "this bucket does not swap")
        return own(store, (of_bucket, key, of_bucket.values.get(key), of_bucket.versions.get(key)), CAS)

    def swap(store, handle, value):
        of_bucket, key, _, version = of(store, handle)
        if of_bucket.versions.get(key) == version:
            of_bucket.write(key, value)
            return None
        return Variant("cas-failed", own(store, (of_bucket, key, of_bucket.values.get(key), of_bucket.versions.get(key)), CAS))

    with linker.root() as root:
        with root.add_instance("wasi:keyvalue/store@0.2.0-draft") as store:
            store.add_resource("bucket", ResourceType.host(BUCKET), handles.drop)
            store.add_func("open", lambda context, _name: own(context, bucket, BUCKET))
            store.add_func("[method]bucket.get", get)
            store.add_func("[method]bucket.set", write)
            store.add_func("[method]bucket.delete", write)
            store.add_func("[method]bucket.exists", lambda context, handle, key: key in of(context, handle).values)
            store.add_func("[method]bucket.list-keys", list_keys)
        with root.add_instance("wasi:keyvalue/atomics@0.2.0-draft") as atomics:
            atomics.add_resource("cas", ResourceType.host(CAS), handles.drop)
            atomics.add_func("[static]cas.new", new_cas)
            atomics.add_func("[method]cas.current", lambda context, handle: of(context, handle)[2])
            atomics.add_func("swap", swap)
