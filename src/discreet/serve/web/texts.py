"""What the pages say, in one file per language.

A page reads texts by their place in the file, `texts.table.rows`. Sentences that the library makes
(statements, refusals) are English; a language file has translations of what the builder says under
`[said]`, with `{}` for whatever differs from one time to the next. Those of statements come from
`discreet.release.language`, which notes in files say as well.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from discreet.errors import check_known
from discreet.release.language import SENTENCE, Templates, built_in

DEFAULT = "en"
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")
_REMEMBERED = 1_000  # translations, since one that is not remembered tries every pattern
_SAME = {"no": "nb", "nn": "nb"}
"""Languages whose readers are served by the texts of another."""


@dataclass(frozen=True)
class LanguageText:
    """A text and the language it is in."""

    text: str
    language: str


@dataclass(frozen=True)
class Numbers:
    """The signs of a language.

    Attributes:
      thousands: Between groups of three digits.
      decimal: Between whole numbers and decimals.
      minus: In front of negative numbers.
      percent: How a percentage is written, `{} %`.
    """

    thousands: str
    decimal: str
    minus: str
    percent: str

    @cached_property
    def _signs(self) -> dict[int, str]:
        return {ord(","): self.thousands, ord("."): self.decimal, ord("-"): self.minus}

    def format(self, value: float, decimals: int = 0) -> str:
        """A number with so many decimals."""
        text = f"{value:,.{decimals}f}"
        if text.startswith("-") and not text.strip("-0.,"):
            text = text[1:]  # what rounds to zero has no sign
        return self.localize(text)

    def localize(self, english: str) -> str:
        """A number in English with the signs of this language."""
        return english.translate(self._signs)

    def in_percent(self, value: float, decimals: int = 1) -> str:
        """A percentage with its sign."""
        return self.percent.format(self.format(value, decimals))


class Texts(SimpleNamespace):
    """All texts of one language, by section and name."""

    code: str
    name: str
    numbers: Numbers
    counted: Mapping[str, Sequence[str]]
    said: Mapping[str, str]

    def count(self, what: str, n: int) -> str:
        """A number of things: `count("cells", 1)` is `1 cell`."""
        one, many = self.counted[what]
        return (one if n == 1 else many).format(self.numbers.format(n))

    def translate(self, english: str) -> LanguageText:
        """A sentence of the library in this language, or as it is where there is none."""
        if self.code == DEFAULT or not english:
            return LanguageText(english, DEFAULT)
        return self._cached_look_up(english)

    @cached_property
    def _cached_look_up(self) -> Callable[[str], LanguageText]:
        return lru_cache(_REMEMBERED)(self._look_up)

    @cached_property
    def _templates(self) -> Templates:
        return Templates(self.said)

    def _look_up(self, english: str) -> LanguageText:
        found = self._templates.find(english, self._localize)
        if found is None:
            parts = [self._templates.find(part, self._localize) for part in SENTENCE.split(english)]
            found = None if None in parts else " ".join(map(str, parts))
        return LanguageText(english, DEFAULT) if found is None else LanguageText(found, self.code)

    def _localize(self, part: str) -> str:
        """A part of a sentence: a number as it is written here, a sentence translated."""
        if _NUMBER.fullmatch(part):
            return self.numbers.localize(part)
        return self.translate(part).text


@cache
def languages() -> tuple[str, ...]:
    """The languages there are texts for, the default first."""
    found = sorted(f.name.removesuffix(".toml") for f in _folder().iterdir())
    return (DEFAULT, *(code for code in found if code != DEFAULT))


@cache
def texts(language: str) -> Texts:
    """The texts of a language."""
    check_known("language", [language], languages())
    return make_texts(language, read_texts(language))


def read_texts(language: str) -> dict[str, Any]:
    """A language file as it is."""
    return tomllib.loads(_folder().joinpath(f"{language}.toml").read_text(encoding="utf-8"))


def make_texts(language: str, content: Mapping[str, Any]) -> Texts:
    """The texts of a file's content."""
    said = {**built_in(language).get("texts", {}), **content["said"]}
    mappings = {"counted": content["counted"], "said": said}
    numbers = Numbers(**content["numbers"])
    return Texts(**{**_sections(content), **mappings, "code": language, "numbers": numbers})


def preferred_language(header: str, offered: Sequence[str]) -> str:
    """The first offered language that an `Accept-Language` header asks for."""
    wishes = [_wish(part) for part in header.split(",") if part.strip()]
    for tag, _ in sorted(wishes, key=lambda wish: -wish[1]):
        base = _SAME.get(tag.split("-")[0], tag.split("-")[0])
        if base in offered:
            return base
    return offered[0]


def nice_ticks(largest: float, about: int = 4) -> list[float]:
    """Round numbers from zero to just beyond the largest value."""
    if not largest > 0:
        return [0.0, 1.0]
    rough = largest / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough * (1 - 1e-9))
    if largest >= about and step < 1:
        step = 1.0
    return [step * k for k in range(math.ceil(largest / step - 1e-9) + 1)]


def _wish(part: str) -> tuple[str, float]:
    tag, _, quality = part.strip().lower().partition(";q=")
    try:
        return tag, float(quality) if quality else 1.0
    except ValueError:
        return tag, 0.0


def _sections(content: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a section, those within it as sections of their own."""
    return {
        name: SimpleNamespace(**_sections(value)) if isinstance(value, Mapping) else value
        for name, value in content.items()
    }


def _folder() -> Any:
    return files("discreet.serve.web") / "texts"
