"""A table builder in a process of its own, stopped by its id."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def started(*arguments):
    """Run a command that serves; gives its process and the address it prints."""
    command = [sys.executable, "-m", "discreet.cli", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, _address(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=60)  # a process that outlives it would keep its pipes


def _address(process):
    for line in process.stdout:
        found = re.search(r"answers at (http://\S+)", line)
        if found:
            return found.group(1)
    raise RuntimeError(f"the server did not start: {process.stderr.read()}")
