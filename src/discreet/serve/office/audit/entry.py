"""One line of the audit log."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal

Kind = Literal["table", "download", "api", "admin"]
OK = "ok"
_LONGEST = {"visitor": 80, "dataset": 80, "edition": 80, "address": 2_000, "kind": 20}
_LONGEST["outcome"] = 40


@dataclass(frozen=True)
class Entry:
    """What is kept of one question.

    Attributes:
      time: When it was answered, in UTC.
      visitor: An account, or a pseudonym that lasts for one day.
      dataset: The data set.
      edition: Its edition.
      address: The question as an address.
      kind: What was asked for.
      outcome: `"ok"`, or the code of the refusal.
      cells: How many cells the answer shows; public, since it follows from the question.
      milliseconds: How long it took.
    """

    time: datetime
    visitor: str
    dataset: str
    edition: str
    address: str
    kind: Kind
    outcome: str
    cells: int
    milliseconds: float

    @property
    def row(self) -> dict[str, Any]:
        """The entry as it is stored: UTC, and no text that a column or a reader would choke on."""
        found = asdict(self)
        found["time"] = utc(self.time)
        found.update({name: _plain(found[name])[:size] for name, size in _LONGEST.items()})
        return found


class Audit:
    """An audit log that keeps nothing; others are kinds of it."""

    def record(self, entry: Entry) -> None:
        """Return when the entry is on the disk."""

    async def recorded(self, entry: Entry) -> None:
        """The same for coroutines."""

    def close(self) -> None:
        """Write what waits."""


COLUMNS = tuple(f.name for f in fields(Entry))


def now() -> datetime:
    """The present moment as it is stored: UTC, without a zone."""
    return utc(datetime.now(UTC))


def utc(time: datetime) -> datetime:
    """A moment as it is stored; one without a zone is taken to be in UTC."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _plain(text: str) -> str:
    """Printable text: no line ends, no halves of surrogate pairs, no zero bytes."""
    made = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in made)
