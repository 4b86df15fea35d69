"""From a browser to a cell of HTML: one page of a table from a data set that was released once.

The site of `discreet demo` is made beforehand by a process of its own, so that only the server and
its one request are counted, with all threads of the server. Run from the repository's root:

    python ../shared/tools/house.py --walk benchmarks/journeys/browser_cell.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

PAGE = "/d/census/table?rows=region%5Bprovince%5D&columns=sex"


def prepare(folder: Path) -> None:
    """The demo country's site with its tables released; a process that nobody counts."""
    command = [sys.executable, "-m", "discreet.cli", "demo", "--persons", "2000", "--check"]
    subprocess.run([*command, "--folder", str(folder)], check=True, capture_output=True)


def make_server(folder: Path) -> Any:
    """The server of the site, ready to listen."""
    counting = sys.getprofile()
    sys.setprofile(None)  # neither imports nor reading the site's file are part of the journey
    import uvicorn

    from discreet.serve.app import make_app
    from discreet.serve.site.start import load_site

    app = make_app(load_site(folder / "site.toml"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    sys.setprofile(counting)
    return server


def fetch_page(server: Any) -> str:
    """The page, by HTTP from the server in a thread of its own."""
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{PAGE}") as answer:
        page: str = answer.read().decode()
    server.should_exit = True
    thread.join()
    return page


def main() -> None:
    """Fetch the page and print its first cell."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        page = fetch_page(make_server(Path(folder)))
    first = re.search(r"<td>([^<]+)</td>", page)
    print("first cell:", first[1] if first else "none")


main()
