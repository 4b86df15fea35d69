"""Plain file servers: Python's own, and one that knows whole names alone, as object stores do."""

import functools
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen


class ObjectStore(SimpleHTTPRequestHandler):
    """Hands out what has exactly this name: no folder, no redirect, no index of its own."""

    def send_head(self):
        if self.path.partition("?")[0].endswith("/"):
            return self.send_error(404)
        return super().send_head()

    def list_directory(self, path):
        return self.send_error(404)

    def log_message(self, *_):
        pass


@contextmanager
def object_store(folder):
    """The address of an object store with the files of a folder."""
    handler = functools.partial(ObjectStore, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def plain_server(folder):
    """The address of `python -m http.server` in a folder."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        port = process.stdout.readline().split(" port ")[1].split()[0]
        address = f"http://127.0.0.1:{port}"
        _wait_for(address)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait_for(address, tries=100):
    for _ in range(tries):
        try:
            with urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{address} does not answer")
