"""Who takes part in a comparison: methods and fitters, their labels and their parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from discreet import registry
from discreet.errors import ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.tables.protected import Method

MethodLike = Method | str
MethodsLike = Mapping[str, MethodLike] | Sequence[MethodLike] | MethodLike


@dataclass(frozen=True)
class Contestant:
    """A method under the label it has in tables and pictures."""

    label: str
    method: Method

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were chosen, as plain data."""
        return parameters_of(self.method)


def contestants(methods: MethodsLike) -> tuple[Contestant, ...]:
    """The methods with different labels.

    Args:
      methods: Methods or texts such as ``"cell-key:D=5,V=3,js=2"``; a mapping gives the labels.
    """
    if isinstance(methods, Mapping):
        named = [(label, build_from("method", m)) for label, m in methods.items()]
    else:
        built = [build_from("method", m) for m in as_list(methods)]
        named = [(label_of(m), m) for m in built]
    labels = [label for label, _ in named]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError(
                f"two methods are called {label!r}. Leave one out or change a parameter; in "
                "Python, {'weak': ..., 'strong': ...} gives labels."
            )
    if not labels:
        raise ParameterError("there is no method to compare.")
    return tuple(Contestant(label, method) for label, method in named)


def as_list(given: Any) -> list[Any]:
    """A list of what may be one thing or a sequence of them; a text is one thing."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def build_from(kind: str, given: Any) -> Any:
    """A method, fitter or measure from a text ``NAME:PARAMETER=VALUE,…``; objects pass through.

    >>> build_from("method", "drop-add:share=0.1,cap=3").cap
    3
    """
    return registry.build(kind, given) if isinstance(given, str) else given


def parameters_of(thing: Any) -> dict[str, Any]:
    """What was chosen otherwise than by default, as plain data; a matrix by how it was made.

    A method's own parameters come before those that it shares with others.
    """
    found: dict[str, Any] = {}
    chosen = fields(thing) if is_dataclass(thing) else ()
    for field in sorted(chosen, key=lambda field: field.kw_only is True):
        value = getattr(thing, field.name)
        if isinstance(value, TransitionMatrix):
            usual = {"mono": True, "variant": "discreet"}
            made = {
                name: _plain(parameter)
                for name, parameter in value.parameters.items()
                if parameter is not None and usual.get(name) != parameter
            }
            found |= made or {"matrix": value.name}
            continue
        if field.default_factory is not MISSING:
            is_default = value == field.default_factory()
        else:
            is_default = _plain(value) == _plain(field.default)
        if not is_default:
            found[field.name] = _plain(value)
    return found


def label_of(thing: Any) -> str:
    """Name and chosen parameters.

    >>> from discreet.protect.drop_add import DropAdd
    >>> label_of(DropAdd(share=0.1)), label_of(DropAdd())
    ('drop-add share=0.1', 'drop-add')
    """
    parts = [str(thing.name)]
    for name, value in parameters_of(thing).items():
        if isinstance(value, float):
            parts.append(f"{name}={value:.4g}")
        else:
            is_text = isinstance(value, str)
            parts.append(f"{name}={value if is_text else json.dumps(value, ensure_ascii=False)}")
    return " ".join(parts)


def law_of(method: Method) -> TransitionMatrix | None:
    """The transition matrix that a method applies to each published count as it stands, if any."""
    publication, law = getattr(method, "publication", None), getattr(method, "law", None)
    if publication is None or not isinstance(law, TransitionMatrix):
        return None
    is_changed = getattr(method, "invariant", False) or publication.threshold is not None
    return law if publication.is_plain and not is_changed else None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return label_of(value) if hasattr(value, "name") else type(value).__name__
