"""Parts of longer lists: pages with numbers, and addresses that lead to the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request

from discreet.serve.api.reply import base_of

T = TypeVar("T")
LARGEST = 100_000
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Which page; the first is 1.")]
PageSize = Annotated[int, Query(ge=1, le=LARGEST, description="Most items on a page.")]


@dataclass(frozen=True)
class Part:
    """One page of a list.

    Attributes:
      number: Its number, from 1.
      size: Most items on a page.
      items: Items on all pages.
    """

    number: int
    size: int
    items: int

    @property
    def pages(self) -> int:
        """The number of pages; an empty list has one."""
        return max(1, math.ceil(self.items / self.size))

    def of(self, listed: Sequence[T]) -> Sequence[T]:
        """The items of the page."""
        start = (self.number - 1) * self.size
        return listed[start : start + self.size]

    def to_json(self) -> dict[str, int]:
        """Where the page stands, as plain data."""
        return {**vars(self), "pages": self.pages}

    def links(self, request: Request, name: str = "page") -> dict[str, Any]:
        """The addresses of this page and of those beside it, if there are any."""
        others = [(k, v) for k, v in request.query_params.multi_items() if k != name]
        path = f"{base_of(request)}{request.scope['state']['path']}"
        last = max(self.pages, self.number)
        beside = {"self": self.number, "next": self.number + 1, "previous": self.number - 1}
        return {
            rel: f"{path}?{urlencode([*others, (name, str(k))])}" if 1 <= k <= last else None
            for rel, k in beside.items()
        }
