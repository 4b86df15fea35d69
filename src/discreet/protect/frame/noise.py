"""What every noise method has: a name, parameters, and a sentence that says what was done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

from discreet.protect.sentences import process
from discreet.tables.statement import Sentence


class Noise(ABC):
    """A method that adds noise; a dataclass whose own fields are the parameters of its law."""

    name: ClassVar[str]
    plain: ClassVar[str] = "Each figure was changed by a small random amount."

    @property
    @abstractmethod
    def done(self) -> str:
        """What was done, in a sentence for methodologists."""

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data, without those of the frame."""
        own = (field.name for field in fields(self) if not field.kw_only)  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in own}

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        return [process(self.name, self.done, self.plain)]
