"""Visitors of a table builder: what they ask, how they wait, and how long they wait for it."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

TIMEOUT = 60.0
VARIABLES = {
    "region": ("region[province]", "region[district]", "region"),
    "age": ("age[broad_age]", "age"),
    "sex": ("sex",),
    "marital": ("marital",),
    "education": ("education[education_level]", "education"),
    "citizenship": ("citizenship",),
}
SHOWN = ("count", "count", "count", "row", "column")
SMALL, LARGE = "new, below 1,000 cells", "new, larger"
CELLS = {
    "region[province]": 9, "region[district]": 61, "region": 69, "age[broad_age]": 4, "age": 24,
    "sex": 3, "marital": 7, "education[education_level]": 5, "education": 14, "citizenship": 4,
}  # fmt: skip
"""Cells of the details, totals included."""
ENDINGS = ("csv", "xlsx", "json", "parquet")


@dataclass(frozen=True)
class Visit:
    """One request: what it is called in the results, and its path."""

    kind: str
    path: str


@dataclass
class Result:
    """What came of the requests of one kind."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """The time that this share of the requests did not exceed, in milliseconds."""
        if not self.seconds:
            return float("nan")
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def visits(rng: random.Random) -> Iterator[Visit]:
    """What one visitor asks, one after another; popular tables are asked by many."""
    while True:
        chance = rng.random()
        if chance < 0.05:
            yield Visit("catalogue", "/")
        elif chance < 0.13:
            yield Visit("first table", "/d/census")
        elif chance < 0.75:
            yield Visit("released once", f"/d/census/table?{_question(rng)}")
        elif chance < 0.85:
            yield Visit("on the fly", f"/d/survey/table?{_question(rng, most=2)}")
        elif chance < 0.93:
            ending = rng.choice(ENDINGS)
            yield Visit("download", f"/d/census/table.{ending}?{_question(rng)}")
        elif chance < 0.98:
            yield Visit("program", f"/api/v1/datasets/census/table?{_question(rng)}")
        else:
            yield Visit("refused", f"/d/census/table?rows={rng.choice(['wages', 'name', 'shoe'])}")


def new_visits(rng: random.Random, dataset: str) -> Iterator[Visit]:
    """Tables of one to four variables, as nobody remembers what was asked before."""
    while True:
        names = rng.sample(list(VARIABLES), rng.randint(1, 4))
        details = [rng.choice(VARIABLES[name]) for name in names]
        cells = math.prod(CELLS[detail] for detail in details)
        if cells <= 20_000:
            split = rng.randint(1, len(details))
            asked = [("rows", d) for d in details[:split]]
            asked += [("columns", d) for d in details[split:]]
            question = urlencode(asked, safe="[]|")
            yield Visit(SMALL if cells < 1_000 else LARGE, f"/d/{dataset}/table?{question}")


def _question(rng: random.Random, most: int = 3) -> str:
    """A table with one to three variables; a draw of low rank comes often, so it is kept."""
    rank = int(rng.paretovariate(0.7))
    chosen = random.Random(rank % 3_000)  # the table of this rank, the same for all visitors
    names = chosen.sample(list(VARIABLES), chosen.randint(1, most))
    details = [chosen.choice(VARIABLES[name]) for name in names]
    split = chosen.randint(1, len(details))
    asked = [("rows", d) for d in details[:split]] + [("columns", d) for d in details[split:]]
    show = chosen.choice(SHOWN)
    if show != "count" and split < len(details):
        asked.append(("show", show))
    return urlencode(asked, safe="[]|")


class Visitor:
    """A visitor with an address of its own, who reads for a while after every answer.

    Args:
      number: Which one; it decides the address and what is asked.
      port: Where the table builder listens.
      think: Mean seconds between an answer and the next question.
      new: Whether only tables are asked that nobody asked before: `once` or `live` says of which.
    """

    def __init__(self, number: int, port: int, think: float, new: str = "") -> None:
        self.port, self.think = port, think
        self.dataset = {"once": "census", "live": "live"}.get(new, "")
        self.rng = random.Random(f"visitor {number}")
        self.address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def stay(self, results: dict[str, Result], until: float) -> None:
        """Ask until the time has come."""
        await asyncio.sleep(self.rng.random() * self.think)
        asked = new_visits(self.rng, self.dataset) if self.dataset else visits(self.rng)
        for visit in asked:
            if time.monotonic() > until:
                break
            await self._ask(visit, results.setdefault(visit.kind, Result()))
            if self.think:
                await asyncio.sleep(self.rng.expovariate(1 / self.think))
        self._close()

    async def _ask(self, visit: Visit, result: Result) -> None:
        began = time.perf_counter()
        try:
            status = await asyncio.wait_for(self._answered(visit.path), TIMEOUT)
        except (OSError, TimeoutError, EOFError, ValueError) as error:
            result.failures.append(f"{type(error).__name__} at {visit.path}")
            self._close()
            return
        result.seconds.append(time.perf_counter() - began)
        result.statuses[status] = result.statuses.get(status, 0) + 1

    async def _answered(self, path: str) -> int:
        """The status; as browsers do, a connection closed while it was idle is opened again."""
        is_reused = self._connection is not None
        try:
            return await self._answer(path)
        except (ConnectionError, EOFError):
            self._close()
            if not is_reused:
                raise
        return await self._answer(path)

    async def _answer(self, path: str) -> int:
        if self._connection is None or self._connection[0].at_eof():
            self._close()
            self._connection = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._connection
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept-Encoding: gzip\r\n"
            f"X-Forwarded-For: {self.address}\r\n\r\n".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = head.split("content-length:")[1].split("\r\n")[0]
        await reader.readexactly(int(length))
        return int(head.split(" ", 2)[1])

    def _close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None
