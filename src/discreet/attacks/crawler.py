"""A visitor of a table builder, who asks over HTTP, remembers, and has so many questions."""

from __future__ import annotations

import csv
import io
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from discreet.errors import DataError

_SECONDS = 30.0  # for one answer
Person = Mapping[str, str]
Crossing = tuple[str, ...]
Further = tuple[tuple[str, str], ...]
"""What a question asks beside its variables: filters and groups, as in an address."""


@dataclass
class Crawler:
    """A visitor with so many questions.

    Attributes:
      url: The address of the data set, as the browser shows it.
      budget: Questions that may still be asked.
      refused: Why questions were refused, by status.
    """

    url: str
    budget: int
    refused: dict[int, int] = field(default_factory=dict)
    _known: dict[tuple[Crossing, Further], dict[Crossing, float]] = field(default_factory=dict)

    def ask(
        self, names: Crossing, further: Further = (), *, anew: bool = False
    ) -> dict[Crossing, float]:
        """The figures of a crossing by their codes; nothing where it is refused or too late."""
        question = names, further
        if question not in self._known or anew:
            if self.budget <= 0:
                return {}
            self.budget -= 1
            self._known[question] = self._fetch(*question)
        return self._known[question]

    def _fetch(self, names: Crossing, further: Further) -> dict[Crossing, float]:
        said = urlencode([("format", "csv"), *(("rows", name) for name in names), *further])
        address = self.url.rstrip("/").replace("/d/", "/api/v1/datasets/", 1)
        try:
            with urllib.request.urlopen(f"{address}/table?{said}", timeout=_SECONDS) as answer:
                text = answer.read().decode("utf-8-sig")
        except urllib.error.HTTPError as error:
            self.refused[error.code] = self.refused.get(error.code, 0) + 1
            return {}
        except (OSError, ValueError) as error:
            raise DataError(f"{self.url} did not answer with a table: {error}.") from error
        head, *rows = csv.reader(io.StringIO(text))
        places = [head.index(name) for name in names]
        values = {tuple(row[k] for k in places): row[-1] for row in rows}
        return {codes: float(value) for codes, value in values.items() if _is_number(value)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
