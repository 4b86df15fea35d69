"""Links of the pages: every state of a table is an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from discreet.serve.query import Query


@dataclass(frozen=True)
class Link:
    """A link that changes the table.

    Attributes:
      label: What it shows, or what it is called where it shows an icon.
      href: Where it leads.
      id: Its name on the page; the keyboard stays on the element of this name.
      is_current: Whether it leads to what is shown already.
      icon: The name of a picture that stands for the label.
      said: What it is called where the label alone would not tell.
      focus: The element that the keyboard goes to where this one is gone afterwards.
    """

    label: str
    href: str
    id: str
    is_current: bool = False
    icon: str = ""
    said: str = ""
    focus: str = ""


@dataclass(frozen=True)
class Addresses:
    """The addresses of a data set's pages.

    Attributes:
      root: The path in front of all pages.
      dataset: The data set's name.
      edit: What is being chosen beside the table, `pick.age`; links may keep it.
    """

    root: str
    dataset: str
    edit: str = ""

    @property
    def start(self) -> str:
        """The page with the first table."""
        return f"{self.root}/d/{quote(self.dataset)}"

    @property
    def about(self) -> str:
        """The page about the data set."""
        return f"{self.start}/about"

    @property
    def table_path(self) -> str:
        """The path that forms are sent to."""
        return f"{self.start}/table"

    def table(self, query: Query, edit: str = "") -> str:
        """The page of a table, with a list of categories beside it where `edit` names one."""
        return f"{self.table_path}?{address(query, edit)}"

    def file(self, query: Query, ending: str) -> str:
        """The table as a file."""
        return f"{self.table_path}.{ending}?{query.address}"

    def saved(self, query: Query) -> str:
        """The query as a file that the command line replays."""
        path = f"{self.root}/api/v1/datasets/{quote(self.dataset)}/query.toml"
        return f"{path}?{query.address}"

    def chart(self, query: Query) -> str:
        """The chart of a table as a file."""
        return f"{self.start}/chart.svg?{query.address}"


def parameters(query: Query, edit: str = "") -> list[tuple[str, str]]:
    """The parameters of a table's page in their one order."""
    return [*query.parameters, *([("edit", edit)] if edit else [])]


def address(query: Query, edit: str = "") -> str:
    """The query string of a table's page."""
    return urlencode(parameters(query, edit), safe="[]|")


def hidden(
    query: Query, without: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """What a form sends along unseen: the whole query but what the form itself asks for."""
    return [*((k, v) for k, v in query.parameters if k not in without), *more]
