"""Errors that say what was seen, what was expected and what to do next; checks of parameters."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np


class DiscreetError(ValueError):
    """Base of all errors raised on purpose.

    Attributes:
      is_public: Whether the author vouches that the message shows nothing of the records. An
        author who does derives a class, or sets it on the error.
    """

    is_public: bool = False

    def public(self) -> str:
        """The text that may be shown to the public."""
        return str(self) if self.is_public else PUBLIC_TEXT


PUBLIC_TEXT = "The request could not be carried out on the confidential side."
"""What the public is told of an error whose message is confidential."""


class ParameterError(DiscreetError):
    """An option has a value it cannot take."""


class UnknownNameError(DiscreetError):
    """A name (column, level, method, file format) that nothing answers to."""

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        self.kind, self.name = kind, name
        self.known = [str(k) for k in known]
        super().__init__(f"unknown {kind} {str(name)!r}. {suggest(str(name), self.known)}")


class CodeError(DiscreetError):
    """A code is missing, repeated, or in the wrong place of a hierarchy or code list."""


class DataError(DiscreetError):
    """The records or counts themselves are at fault."""


class ColumnError(DataError):
    """Values that a column cannot hold as they were asked for."""


class DesignError(DiscreetError):
    """Arrays, labels or margins do not fit the design."""


class KeysError(DiscreetError):
    """Record keys, cell keys or the secret behind them are missing or out of range."""


class InfeasibleError(DiscreetError):
    """No solution meets all the conditions that were asked for."""


class NotConvergedError(DiscreetError):
    """A fit stopped before it reached its tolerance, and a converged one was required."""


class ConfidentialError(DiscreetError):
    """Something confidential was about to be published, or to be read as if it were public."""


class LedgerError(DiscreetError):
    """The custodian's ledger does not allow a release, or cannot be used."""


class BudgetError(DiscreetError):
    """A private release would cost more than what is left of the budget."""

    def public(self) -> str:
        """The fact alone: it follows from what was asked for, not from the records."""
        return "What is left of the privacy budget does not suffice for this release."


class GateError(DiscreetError):
    """Attacks found more than the office allows, or did not finish; nothing was published."""


class EngineError(DiscreetError):
    """The engine that holds the records did not answer as it should."""


class MissingDependencyError(DiscreetError, ImportError):
    """An optional package is needed."""

    def __init__(self, purpose: str, package: str, extra: str | None = None) -> None:
        wanted = package if extra is None else f"'discreet[{extra}]'"
        super().__init__(f"{purpose} needs {package}: `pip install {wanted}`.")


class PluginError(DiscreetError):
    """What another package registers cannot be used."""


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


def check_known(kind: str, names: Iterable[object], known: Collection[object]) -> None:
    """Refuse the first of some names that is none of those that are known."""
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def whole(name: str, value: int, least: int) -> int:
    """A whole number of at least `least`; NumPy's integers are taken too."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def is_number(value: object) -> bool:
    """Whether a value is a real number; NumPy's are taken too, truth values and text are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def truth_value(name: str, value: object) -> bool:
    """True or false, and nothing that only counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def texts(**given: object) -> None:
    """Refuse options that are given and are no single text."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise ParameterError(f"{name}= takes one text, got {value!r:.60}.")


def paths(**given: object) -> None:
    """Refuse options that are given and name no file."""
    for name, value in given.items():
        if value is not None and not isinstance(value, (str, Path)):
            raise ParameterError(f"{name}= takes the name of a file, got {value!r:.60}.")


def positive(name: str, value: float) -> float:
    """A finite number above zero."""
    if not is_number(value) or not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def within(name: str, value: float, most: float) -> float:
    """A number above zero and not above `most`."""
    if not is_number(value) or not 0 < value <= most:
        raise ParameterError(f"{name} must lie in (0, {most:g}], got {value!r}.")
    return float(value)
