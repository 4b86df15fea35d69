"""Languages: sentences as templates, the words of files, and their translations.

A language is a file: `[texts]` has English sentences, `{}` for a number or a name, `[words]` the
words that stand alone. English needs none. What a language lacks is an error, since half a
translation would say half the truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from discreet.errors import DataError
from discreet.files import read_toml, write_text

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
      fallback: The language that says what this one has no translation of.
      lost: Where this is kept otherwise, by section of the language's file; refused one by one
        where that is absent.
    """

    code: str
    texts: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    fallback: Language | None = None
    lost: dict[str, dict[str, str]] | None = field(default=None, compare=False)

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
        is_file = folder is not None and _own_file(code, folder).is_file()
        if code != ENGLISH and not is_file and not ours:
            known = ", ".join([ENGLISH, *sorted(p.stem for p in _BUILT_IN.glob("*.toml"))])
            raise DataError(
                f"there is no language {code!r}: {known} come with discreet, and another one is a "
                f"file {FOLDER}/{code}.toml beside the publication's. Make an empty one, and "
                "`discreet check publication` prints what belongs into it."
            )
        texts, words = ({**ours.get(k, {}), **own.get(k, {})} for k in ("texts", "words"))
        return cls(code, texts, words)

    def say(self, text: str) -> str:
        """A text in this language, paragraph by paragraph."""
        if "\n\n" in text:
            return "\n\n".join(map(self.say, text.split("\n\n")))
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
                said.append(self._stand_in(sentences))
        return " ".join(said)

    def _stand_in(self, sentences: list[str]) -> str:
        """What is said of the next sentence, which has no translation; it is taken out."""
        if self.fallback is not None:
            return self.fallback.say(sentences.pop(0))
        for n in range(len(sentences), 0, -1):
            run = " ".join(sentences[:n])
            if (template := _sentences().find(run, most=1)) is not None or n == 1:
                break
        del sentences[:n]
        self._lose("texts", template or run)
        return run

    def _lose(self, section: str, text: str) -> None:
        if self.lost is None:
            raise DataError(
                f"language {self.code!r} has no text for {text!r}: add it to [{section}] of "
                f"{FOLDER}/{self.code}.toml."
            )
        self.lost.setdefault(section, {})[text] = text

    def check_complete(self, folder: Path) -> None:
        """Refuse a language that has lost something; all of it is written beside its file."""
        if not self.lost:
            return
        import tomli_w

        own = _own_file(self.code, folder)
        lost, n = own.with_name(f"{self.code}.missing.toml"), sum(map(len, self.lost.values()))
        write_text(lost, tomli_w.dumps(self.lost))
        raise DataError(
            f"language {self.code!r} has no translation of {n} texts, which stand in {lost}. "
            f"Translate what is on the right there, braces for numbers and names, and put it into "
            f"{own}; or let the first line of that file say `fallback = true`."
        )

    def say_if_known(self, text: str) -> str:
        """A text in this language, or as it is: what an office writes itself has no template."""
        return self._templates.find(text) or text

    def word(self, word: str) -> str:
        """A word in this language."""
        if word in self.words:
            return self.words[word]
        if self.code == ENGLISH:
            return word
        if self.fallback is not None:
            return self.fallback.word(word)
        self._lose("words", word)
        return word

    @cached_property
    def _templates(self) -> Templates:
        return Templates(self.texts)


def built_in(code: str) -> dict[str, Any]:
    """What comes with us of a language; nothing where we do not know it."""
    path = _BUILT_IN / f"{code}.toml"
    return read_toml(path) if path.is_file() else {}


def read_own(code: str, folder: Path | None) -> dict[str, Any]:
    """A publication's own file of a language; nothing where it has none."""
    path = None if folder is None else _own_file(code, folder)
    return {} if path is None or not path.is_file() else read_toml(path)


def _own_file(code: str, folder: Path) -> Path:
    return folder / FOLDER / f"{code}.toml"


@cache
def _sentences() -> Templates:
    """What we say, by itself: a language that comes with us has all of it."""
    known = built_in("nb")["texts"]
    return Templates({text: text.replace("{}", "{{}}") for text in known})
