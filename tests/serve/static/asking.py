"""Questions to the client's modules in node, and the server's answers to the same."""

import json
import re
import shutil
import subprocess
from pathlib import Path

NODE = shutil.which("node")
_ASK = Path(__file__).with_name("ask.mjs")
_MAIN = re.compile(r"<main.*?</main>", re.DOTALL)
_TAKE = re.compile(r'<section class="take".*?</section>', re.DOTALL)
_CHART = re.compile(r'<a href="[^"]*(chart\.svg\?|&amp;file=svg)[^"]*" download>')


class Client:
    """The client's modules on a folder of files.

    Args:
      out: The folder.
    """

    def __init__(self, out):
        self.process = subprocess.Popen(
            [NODE, str(_ASK), str(out)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, address, lang="en", **more):
        """The page of an address, with its figures."""
        path, _, search = address.lstrip("/").partition("?")
        question = {"path": path, "search": search and f"?{search}", "lang": lang, **more}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def main_of(html):
    """What a page says in its main part, but for files and programs, which differ."""
    return _CHART.sub("", _TAKE.sub("", _MAIN.search(html)[0]))
