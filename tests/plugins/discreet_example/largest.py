"""An attack: the largest published cells are said to be exact."""

from dataclasses import dataclass
from typing import ClassVar

from discreet.attacks import Claims


@dataclass(frozen=True)
class Largest:
    """Claims the true counts of the largest cells."""

    name: ClassVar[str] = "largest"
    most: int = 3

    def __call__(self, release, knowledge, *, rng):
        return Claims.ranked(range(len(release.z)), release.z.tolist(), release.z, most=self.most)
