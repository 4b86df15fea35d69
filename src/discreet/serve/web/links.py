"""Links of the pages: every state of a table is an address."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from discreet.serve.query import Query


@dataclass(frozen=True)
class Addresses:
    """The addresses of a data set's pages.

    Attributes:
      root: The path in front of all pages.
      dataset: The data set's name.
    """

    root: str
    dataset: str

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

    @property
    def programs(self) -> str:
        """The data set for programs."""
        return f"{self.root}/api/v1/datasets/{quote(self.dataset)}"

    def saved(self, query: Query) -> str:
        """The query as a file that the command line replays."""
        return f"{self.programs}/query.toml?{query.address}"

    def program(self, query: Query, form: str) -> str:
        """The table for programs, in a format."""
        return f"{self.programs}/table?{query.address}&format={form}"

    def chart(self, query: Query) -> str:
        """The chart of a table as a file."""
        return f"{self.start}/chart.svg?{query.address}"


def parameters(query: Query, edit: str = "") -> list[tuple[str, str]]:
    """The parameters of a table's page in their one order."""
    return [*query.parameters, *([("edit", edit)] if edit else [])]


def address(query: Query, edit: str = "") -> str:
    """The query string of a table's page."""
    return urlencode(parameters(query, edit), safe="[]|")
