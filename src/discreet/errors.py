"""Errors that say what was seen, what was expected and what to do next.

Every error raised on purpose is a `DiscreetError`. The full message may show values of the
confidential side; `DiscreetError.public` gives a text that may cross to the public side.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DiscreetError(ValueError):
    """Base of all errors raised on purpose."""

    public_text = "The request could not be carried out on the confidential side."

    def public(self) -> str:
        """A text without true counts, keys or codes found in records."""
        return self.public_text


class ParameterError(DiscreetError):
    """An option has a value it cannot take."""

    def public(self) -> str:
        """Options are chosen by the caller, so the message is safe as it stands."""
        return str(self)


class UnknownNameError(DiscreetError):
    """A name (column, level, method, file format) that nothing answers to."""

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        self.kind, self.name = kind, name
        self.known = [str(k) for k in known]
        super().__init__(f"unknown {kind} {str(name)!r}. {suggest(str(name), self.known)}")

    def public(self) -> str:
        """Names belong to the public design, so the message is safe as it stands."""
        return str(self)


class CodeError(DiscreetError):
    """A code is missing, repeated, or in the wrong place of a hierarchy or code list."""


class DataError(DiscreetError):
    """The records or counts themselves are at fault."""


class DesignError(DiscreetError):
    """Arrays, labels or margins do not fit the design."""


class KeysError(DiscreetError):
    """Record keys, cell keys or the secret behind them are missing or out of range."""


class InfeasibleError(DiscreetError):
    """No solution meets all the conditions that were asked for."""

    def public(self) -> str:
        """Feasibility of a public request is a public fact; the message names parameters only."""
        return str(self)


class NotConvergedError(DiscreetError):
    """A fit stopped before it reached its tolerance, and a converged one was required."""


class ConfidentialError(DiscreetError):
    """Something confidential was about to be published, or to be read as if it were public."""


class EngineError(DiscreetError):
    """The engine that holds the records did not answer as it should."""


class MissingDependencyError(DiscreetError, ImportError):
    """An optional package is needed."""

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}: `pip install 'discreet[{extra}]'`.")


def suggest(name: str, known: list[str], limit: int = 3) -> str:
    """One sentence that names the nearest known names, or all of them when they are few."""
    folded = {k.casefold(): k for k in known}
    near = [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, n=limit)]
    if near:
        return f"Did you mean {' or '.join(repr(k) for k in near)}?"
    if not known:
        return "There are none to choose from."
    shown = ", ".join(repr(k) for k in known[:12])
    return f"Known: {shown}{', …' if len(known) > 12 else ''}."
