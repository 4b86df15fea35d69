"""The site that is recorded: an invented country's people in five data sets, and its server."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from recorded.entry import discreet

SECRET = "8d1f6b0e93c72a54e60fb8d9175c3e2ab4f7096d81c5e3a2704fd96be81c5a37\n"
PEOPLE = 3000
ADDRESS = "http://tables.example"


def run(*arguments: object, folder: Path) -> str:
    """A command that must succeed; its output."""
    done = subprocess.run(discreet(*arguments), cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"discreet {arguments} failed: {done.stderr}")
    return done.stdout


def write_secret(path: Path) -> None:
    """The same secret every time, in a file for its owner alone."""
    path.write_text(SECRET)
    path.chmod(0o600)


def make_site(folder: Path) -> Path:
    """People, code lists, `site.toml` and the builds of what is released once."""
    folder.mkdir(parents=True, exist_ok=True)
    write_secret(folder / "keys.secret")
    run("demo", "--no-serve", "--folder", ".", "--persons", PEOPLE, folder=folder)
    path = folder / "site.toml"
    path.write_text(tomli_w.dumps(_site(tomllib.loads(path.read_text()))))
    run("build", "site.toml", folder=folder)
    return path


def _site(demo: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": "Statistics Tarvenia",
        "description": "Tables about the people of an invented country.",
        "contact": "statistics@tarvenia.example",
        "address": ADDRESS,
        "languages": ["en", "nb"],
        "accounts": {"rate": 0},
        "policy": {"max_variables": 3, "max_cells": 4000},
        "datasets": _datasets(demo["datasets"]["census"], demo["datasets"]["survey"]),
    }


def _datasets(census: Mapping[str, Any], survey: Mapping[str, Any]) -> dict[str, Any]:
    records = {k: census["records"][k] for k in ("source", "id", "codes", "secret")}
    people = {**records, "recode": {"region": "district"}, "ledger": "ledger.db"}
    about = {k: census[k] for k in ("source", "date", "licence", "contact", "footnotes")}
    keyed = {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}}
    return {
        "census": {
            **about,
            "title": "Census of Tarvenia",
            "description": "Everybody who lives in Tarvenia.",
            "labels": {"marital": "marital status"},
            "records": {**people, "name": "census", "edition": "2026"},
            "recipe": {
                "tabulate": {"margins": "region*age + region*sex + age*sex*marital"},
                "protect": {"method": "safe", "parameters": {}},
            },
        },
        "rounded": {
            **about,
            "title": "Counts in threes",
            "records": {**people, "name": "rounded", "edition": "2025"},
            "recipe": {
                "tabulate": {"margins": "region[province]*age[broad_age]*sex"},
                "protect": {
                    "method": "small-count-rounding",
                    "parameters": {"base": 3, "force_inner": True},
                },
            },
            "policy": {
                "max_variables": 2,
                "threshold": 6,
                "groups": "fixed",
                "fixed_groups": {"region": {"The west": ["A", "B"], "The rest": ["C", "D"]}},
                "forbidden": [["age", "sex"]],
                "area": "region",
                "max_sparsity": 0.9,
                "public_parameters": ["max_variables"],
            },
        },
        "keyed": {
            **about,
            "title": "People on the fly",
            "mode": "on-the-fly",
            "records": {**records, "name": "keyed", "edition": "2026"},
            "recipe": {"tabulate": {"margins": "region*age*sex*education"}, "protect": keyed},
            "policy": {"min_population": 3, "min_difference": 5},
        },
        "survey": {**survey, "policy": {"groups": "none", "min_mean_cell": 1}},
        "private": {  # noise of the operating system: recorded without its figures
            "title": "Private people",
            "mode": "on-the-fly",
            "records": {**people, "name": "private", "epsilon": 1.0},
            "recipe": {
                "tabulate": {"margins": "region[province]*sex + age[broad_age]"},
                "protect": {"method": "discrete-laplace", "parameters": {"epsilon": 0.5}},
            },
        },
    }


class Server:
    """A running table builder that is asked over one connection."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def ask(
        self, path: str, *, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content of an answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for again in (True, False):  # an idle connection may have been closed meanwhile
            try:
                self.connection.request(method, path, body, named)
                answer = self.connection.getresponse()
                content = answer.read()
                break
            except (http.client.RemoteDisconnected, ConnectionError):
                self.connection.close()
                if not again:
                    raise
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content


@contextlib.contextmanager
def serving(*arguments: object, folder: Path) -> Iterator[Server]:
    """A table builder on a free port for the length of the block, stopped by its id."""
    command = discreet("serve", *arguments, "--port", 0)
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Server(_address(process))
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        if found := re.search(r"answers at (http://\S+)", line):
            return found.group(1)
    raise RuntimeError("the table builder did not start")
