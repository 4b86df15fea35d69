"""Languages: sentences as templates, the words of files, and their translations.

A language is a file: `[texts]` has English sentences, `{}` for a number or a name, `[words]` the
words that stand alone. English needs none. What a language lacks is an error, since half a
translation would say half the truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.errors import DataError
from discreet.files import read_toml

ENGLISH = "en"
FOLDER = "texts"
"""Where a publication has languages of its own, beside its file."""
_BUILT_IN = Path(__file__).with_name("texts")
_NUMBER = re.compile(r"-?\d+\.\d+")
SENTENCE = re.compile(r"(?<=[.:]) (?=[A-Z0-9])")
"""What stands between two sentences."""
WORDS = (
    *("Title", "Source", "Edition", "Updated", "Licence", "Contact", "Address", "Citation"),
    *("Note", "Footnote", "Statement", "Table", "Notes", "Contents", "Total"),
    *("count", "weight", "confidential", "cannot occur", "not available"),
)
"""Words of files that stand alone: headings, names of sheets, meanings of symbols."""


class Templates:
    """Translations of English texts, in which `{}` stands for a number or a name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find(self, english: str, part: Callable[[str], str] = str, *, most: int = 0) -> str | None:
        """The translation of a text.

        Args:
          english: The text.
          part: Writes what stands in place of `{}`.
          most: Sentences that a part may hold at most; any number if 0.
        """
        if english in self._texts:
            return self._texts[english]
        for pattern, translation in self._patterns:
            found = pattern.fullmatch(english)
            if found and not (most and any(_longer(text, most) for text in found.groups())):
                return translation.format(*map(part, found.groups()))
        return None

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        # the most exact first: "Figures of {} and {}" before "Figures of {}"
        order = sorted(self._texts, key=lambda english: -len(english.replace("{}", "")))
        made = ((e, "(.+?)".join(map(re.escape, e.split("{}")))) for e in order if "{}" in e)
        return [(re.compile(pattern, re.DOTALL), self._texts[e]) for e, pattern in made]


def _longer(text: str, most: int) -> bool:
    return len(SENTENCE.split(text)) > most


@dataclass(frozen=True)
class Language:
    """A language: its code, and translations of sentences and words.

    Attributes:
      code: Its code, `nb`.
      texts: Translations of sentences.
      words: Translations of words that stand alone, and of the decimal sign.
      is_lenient: Whether a sentence without translation stays English: a release of an earlier
        version may say what nobody says now, and must be withdrawn all the same.
    """

    code: str
    texts: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    is_lenient: bool = False

    @property
    def decimal(self) -> str:
        """The decimal sign."""
        return self.words.get(".", ".")

    def number(self, text: str) -> str:
        """A number as it is written in this language; other texts stay as they are."""
        return text.replace(".", self.decimal) if _NUMBER.fullmatch(text) else text

    def _part(self, text: str) -> str:
        """A part of a sentence: a number, reasons in a list, or what has no translation."""
        listed = [self._templates.find(one, self.number) or one for one in text.split("; ")]
        return "; ".join(map(self.number, listed))

    @classmethod
    def read(cls, code: str, folder: Path | None = None) -> Language:
        """English, or what comes with us together with a file of the publication's own."""
        own, ours = read_own(code, folder), built_in(code)
        if code != ENGLISH and not own and not ours:
            known = ", ".join([ENGLISH, *sorted(p.stem for p in _BUILT_IN.glob("*.toml"))])
            raise DataError(
                f"there is no language {code!r}: {known} come with discreet, and another one is a "
                f"file {FOLDER}/{code}.toml beside the publication's."
            )
        texts, words = ({**ours.get(k, {}), **own.get(k, {})} for k in ("texts", "words"))
        return cls(code, texts, words)

    def say(self, text: str) -> str:
        """A text in this language."""
        if self.code == ENGLISH or not text:
            return text
        said, sentences = [], SENTENCE.split(text)
        while sentences:  # the longest run of sentences that is known together
            for n in range(len(sentences), 0, -1):
                run = " ".join(sentences[:n])
                # a number is part of one sentence: otherwise a template would take in the next ones
                if (found := self._templates.find(run, self._part, most=1)) is not None:
                    said.append(found)
                    sentences = sentences[n:]
                    break
            else:
                if not self.is_lenient:
                    raise DataError(
                        f"language {self.code!r} has no text for {sentences[0]!r}: add it to "
                        f"[texts] of {FOLDER}/{self.code}.toml."
                    )
                said.append(sentences.pop(0))
        return " ".join(said)

    def say_if_known(self, text: str) -> str:
        """A text in this language, or as it is: what an office writes itself has no template."""
        return self._templates.find(text) or text

    def word(self, word: str) -> str:
        """A word in this language."""
        if self.code == ENGLISH:
            return word
        if word not in self.words:
            raise DataError(
                f"language {self.code!r} has no word for {word!r}: add it to [words] of "
                f"{FOLDER}/{self.code}.toml."
            )
        return self.words[word]

    @cached_property
    def _templates(self) -> Templates:
        return Templates(self.texts)


def built_in(code: str) -> dict[str, Any]:
    """What comes with us of a language; nothing where we do not know it."""
    path = _BUILT_IN / f"{code}.toml"
    return read_toml(path) if path.is_file() else {}


def read_own(code: str, folder: Path | None) -> dict[str, Any]:
    """A publication's own file of a language; nothing where it has none."""
    path = None if folder is None else folder / FOLDER / f"{code}.toml"
    return {} if path is None or not path.is_file() else read_toml(path)
