"""A rule of another package."""

from dataclasses import dataclass

from discreet.rules import Threshold


@dataclass(frozen=True)
class Even(Threshold):
    """Even counts up to a limit are sensitive."""

    @property
    def name(self):
        """The rule in a word."""
        return f"even({self.max})"

    def primaries(self, table):
        """Small even counts."""
        return super().primaries(table) & (table.z % 2 == 0)
