"""What a rule is: it looks at a question, then at protected figures, never at records."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.release.cube import Cube
from discreet.serve.question import Question


@dataclass(frozen=True, eq=False)
class Judged:
    """A protected cube as far as rules have judged it, with notes for the reader."""

    cube: Cube
    notes: tuple[str, ...] = ()

    def noting(self, text: str) -> Judged:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, text))


class Rule:
    """A rule of a policy; one that does not say otherwise lets everything pass."""

    def check(self, question: Question) -> None:
        """Refuse by what is public: names and sizes of the question."""

    def judge(self, question: Question, judged: Judged) -> Judged:
        """Refuse, or hide cells, by the protected figures that would be shown."""
        return judged
