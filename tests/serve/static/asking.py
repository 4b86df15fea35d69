"""Questions to the client's modules in node, and the server's answers to the same."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np

from discreet.serve import Query
from tests.serve.kernel.workbooks import read_book

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
        found = json.loads(self.process.stdout.readline())
        self.status = found.get("status")
        return found

    def close(self):
        self.process.communicate(timeout=10)


def main_of(html):
    """What a page says in its main part, but for files and programs, which differ."""
    return _CHART.sub("", _TAKE.sub("", _MAIN.search(html)[0]))


def served(server, address, lang):
    """The server's page of an address, and the query string it was sent on to."""
    said, moved = address, None
    while True:
        response = server.get(f"{said}{'&' if '?' in said else '?'}lang={lang}")
        if response.status_code != 303:
            return response, moved
        moved = response.headers["location"].partition("?")[2].replace("%7C", "|")
        said = f"{address.partition('?')[0]}?{moved}"


def difference(server, client, site, address, lang, sums=None):
    """What differs between the pages of files and of the server, or from DuckDB's sums."""
    response, moved = served(server, address, lang)
    found = client.ask(address, lang)
    if "error" in found:
        return f"{address}: {found['error']}"
    if response.status_code != found["status"]:
        return f"{address}: status {found['status']} in place of {response.status_code}"
    if moved is not None and moved != found["search"].lstrip("?"):
        return f"{address}: the page says {found['search']} in place of {moved}"
    here, there = main_of(found["html"]), main_of(response.text)
    if here != there:
        place = next(k for k, pair in enumerate(zip(here, there, strict=False)) if len({*pair}) > 1)
        part = slice(max(0, place - 60), place + 60)
        return f"{address} ({lang}): {here[part]!r} in place of {there[part]!r}"
    path, _, asked = address.partition("?")
    if found["figures"] is None or not path.endswith("/table"):
        return None
    dataset = site.dataset(path.split("/")[2])
    asked = [p for p in parse_qsl(asked if moved is None else moved) if p[0] != "edit"]
    answer = dataset.answer(Query.parse(asked))
    return figures_differ(address, answer.cube, found["figures"]) or (
        sums and sums.difference(dataset, answer)
    )


ENDINGS = (".csv", ".xlsx", ".jsonstat.json", ".px", ".svg")


def file_difference(server, client, address, lang, ending):
    """What differs between the files of a table that a browser makes and that the server sends."""
    response, moved = served(server, address, lang)
    path, _, asked = address.partition("?")
    if response.status_code != 200 or not path.endswith("/table"):
        return None
    asked = [p for p in parse_qsl(asked if moved is None else moved) if p[0] != "edit"]
    query = Query.parse(asked).address
    name = "chart.svg" if ending == ".svg" else f"table{ending}"
    sent = server.get(f"{path.removesuffix('table')}{name}?{query}&lang={lang}")
    found = client.ask(f"{path}?{query}", lang, ending=ending)
    here = base64.b64decode(found.get("file", ""))  # nothing where there is no chart
    if sent.status_code != 200:
        return f"{address}: a {ending} file that there is not" if here else None
    if "error" in found:
        return f"{address}: {found['error']}"
    read = read_book if ending == ".xlsx" else bytes
    is_same = read(here) == read(sent.content)
    return None if is_same else f"{address} ({lang}): another {ending} file"


def figures_differ(address, cube, figures):
    """Whether the figures behind a table differ from those of the data set, cell by cell."""
    slack = 0.0 if cube.values.dtype.kind == "i" else 1e-12  # sums of decimals, in any order
    is_same = np.allclose(figures["values"], cube.values.ravel(), rtol=slack, atol=0.0)
    is_same &= cube.status.ravel().tolist() == figures["status"]
    return None if is_same else f"{address}: figures {figures} in place of {cube.values}"
