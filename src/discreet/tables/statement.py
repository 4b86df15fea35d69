"""What a release says about itself: steps, and sentences that are true of the final values.

A sentence belongs to the step that makes it true. A later step that changes the values takes back
every sentence about the values before it, and brings its own; so the text is derived from the steps
and cannot outlive what it describes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from discreet.display import Display, Displayed

About = Literal["values", "process", "limits"]
_PARTS: tuple[About, ...] = ("process", "values", "limits")
_HEADINGS = {
    "process": "What was done",
    "values": "What holds",
    "limits": "What is not protected",
}
_WATCHED = ("editions", "other-releases", "released-again", "public-secret", "pattern-tells")
"""Kinds of sentences that speak of what an office does next."""
_ADVICE = {"nested-crossings": "Limit the tables that are offered."}
"""What the office should do about what a kind of sentence says; confidential, in no public text."""


@dataclass(frozen=True)
class Sentence:
    """One thing that a statement says.

    Attributes:
      kind: A short name for programs.
      text: The sentence for methodologists.
      plain: The same for readers who have never heard of noise; empty where it does not concern
        them.
      about: `"values"`: a property of the released values, void once a later step changes them;
        `"process"`: what was done; `"limits"`: what is not protected.
      holds: Whether the sentence is true, given evidence: releases made under many secrets and
        the truth. Sentences about values have one; `discreet.testing` checks it.
    """

    kind: str
    text: str
    plain: str = ""
    about: About = "values"
    holds: Callable[[Any], bool] | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, str]:
        """The sentence as plain data."""
        return {"kind": self.kind, "about": self.about, "text": self.text, "plain": self.plain}


@dataclass(frozen=True)
class PrivacyStatement:
    """What a differentially private release guarantees, in numbers.

    Attributes:
      epsilon: ε when one unit is added or removed.
      delta: δ of the same guarantee.
      epsilon_replace: ε when one unit is replaced by another; `delta_replace` goes with it.
      delta_replace: δ when one unit is replaced by another.
      rho: ρ of zero-concentrated differential privacy, where noise is Gaussian.
      sensitivity: By how much one unit changes all perturbed values together.
      unit: What is added, removed or replaced.
      rho_replace: ρ when one unit is replaced by another.
      relation: Which data sets are neighbours, as plain data: `change`, `unit` and its bounds.
    """

    epsilon: float
    delta: float
    epsilon_replace: float
    delta_replace: float
    sensitivity: float
    unit: str
    rho: float | None = None
    rho_replace: float | None = None
    relation: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Step:
    """One step between the records and the release: its public parameters and what it says.

    Attributes:
      name: The step, such as `"protect:cell-key"` or `"fit:non-negative"`.
      parameters: Public parameters as plain data.
      sentences: What the step says.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class Statement(Displayed):
    """What was done, with which parameters and version, and what it promises and does not.

    It travels with the release and is public: it never holds a true value or a secret.
    """

    steps: tuple[Step, ...] = ()
    privacy: PrivacyStatement | None = None
    version: str = ""

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """Everything that is said: what was done, what holds, what is not protected."""
        said = dict.fromkeys(sentence for step in self.steps for sentence in step.sentences)
        return tuple(sorted(said, key=lambda sentence: _PARTS.index(sentence.about)))

    @property
    def text(self) -> str:
        """The statement for methodologists."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def plain(self) -> str:
        """The statement for readers who have never heard of noise."""
        said = dict.fromkeys(s.plain for s in self.sentences if s.plain)
        return " ".join(said)

    @property
    def public(self) -> str:
        """The statement for everybody; the same as `plain`."""
        return self.plain

    @property
    def methods(self) -> dict[str, list[str]]:
        """The sentences for methodologists by what they tell: done, promised, not protected."""
        found = {about: [s.text for s in self.sentences if s.about == about] for about in _PARTS}
        return {about: list(dict.fromkeys(texts)) for about, texts in found.items() if texts}

    def __str__(self) -> str:
        wrap = partial(textwrap.wrap, width=100, break_on_hyphens=False)
        lines = wrap(self.plain)
        for about, texts in self.methods.items():
            lines += ["", _HEADINGS[about]]
            for text in texts:
                lines += wrap(text, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(lines)

    def _display(self) -> Display:
        said = [(_HEADINGS[about], texts) for about, texts in self.methods.items()]
        return Display("Statement", "public", lines=said, note=self.plain)

    @property
    def office(self) -> str:
        """What the office should watch, in paragraphs; confidential."""
        watched = [s for s in self.sentences if s.kind in (*_WATCHED, *_ADVICE)]
        texts = [f"{s.text} {_ADVICE.get(s.kind, '')}".strip() for s in watched]
        return "\n\n".join(dict.fromkeys(texts))

    def says(self, kind: str) -> bool:
        """Whether a sentence of this kind is part of the statement."""
        return any(sentence.kind == kind for sentence in self.sentences)

    def then(self, step: Step, *, changes_values: bool = True) -> Statement:
        """The statement after one more step.

        Args:
          step: The step.
          changes_values: Whether values are other ones afterwards, so that what was said of them
            is void.
        """
        before = self.without_values if changes_values else self
        return replace(self, steps=(*before.steps, step))

    @property
    def without_values(self) -> Statement:
        """The statement without what holds for these values alone."""
        steps = (
            replace(s, sentences=tuple(t for t in s.sentences if t.about != "values"))
            for s in self.steps
        )
        return replace(self, steps=tuple(steps))

    def with_first_step(self, step: Step) -> Statement:
        """The statement with a step in front."""
        return replace(self, steps=(step, *self.steps))

    def to_json(self) -> dict[str, Any]:
        """The statement as plain data."""
        steps = [
            {
                "name": step.name,
                "parameters": plain_data(step.parameters),
                "sentences": [sentence.to_json() for sentence in step.sentences],
            }
            for step in self.steps
        ]
        privacy = None if self.privacy is None else vars(self.privacy)
        return {
            "text": self.text,
            "plain": self.plain,
            "steps": steps,
            "privacy": privacy,
            "version": self.version,
        }

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Statement:
        """The inverse of `to_json`; sentences come back without their predicates."""
        steps = tuple(
            Step(s["name"], s["parameters"], tuple(Sentence(**said) for said in s["sentences"]))
            for s in spec["steps"]
        )
        privacy = spec["privacy"]
        return cls(steps, None if privacy is None else PrivacyStatement(**privacy), spec["version"])


def plain_data(value: Any) -> Any:
    """A parameter as JSON can hold it; anything unusual as text."""
    if isinstance(value, Mapping):
        return {str(name): plain_data(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(inner) for inner in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def step_of(name: str, parameters: Mapping[str, Any], sentences: Iterable[Sentence]) -> Step:
    """A step; parameters that were left out are not named."""
    used = {key: value for key, value in parameters.items() if value is not None}
    return Step(name, used, tuple(sentences))
