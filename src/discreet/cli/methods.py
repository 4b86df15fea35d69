"""Commands about what can be chosen: methods with their parameters and presets, ptable."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import registry
from discreet.cli.options import Json, answer, choice
from discreet.errors import DiscreetError, MissingDependencyError, UnknownNameError
from discreet.files import ending_of, written_whole
from discreet.noise import TransitionMatrix, perturbation_table
from discreet.noise.entropy import Variant

_KINDS = ("method", "fitter", "measure", "measure of records", "matrix", "rule", "synthesizer")
_ENTRY = re.compile(r"^ {2}(\*{0,2}[\w, ]+): (.*)$")
_SECTION = re.compile(r"^[A-Z]\w*:$")
# What docstrings write for other readers: formulas and code.
_MARKS = re.compile(r":\w+:`([^`]*)`|``([^`]*)``|`([^`]*)`")


@dataclass(frozen=True)
class Described:
    """A registered name with what is known of it."""

    kind: str
    name: str
    summary: str
    parameters: tuple[tuple[str, str, str], ...]  # name, default ("needed" without one), meaning
    presets: tuple[tuple[str, str], ...]  # name, what it stands for and its source

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.kind}): {self.summary}"]
        for name, default, meaning in self.parameters:
            lines.append(f"  {name} ({default}): {meaning}".removesuffix(": "))
        lines += [f"  preset {name}: {what}" for name, what in self.presets]
        plain = [name for name, *_ in self.parameters if name not in registry.PARTS]
        if plain:
            lines.append(f"  written as text: {self.name}:{plain[0]}=VALUE,…")
        return "\n".join(lines)


def methods(
    name: Annotated[
        str | None, typer.Argument(help="A method, fitter, measure, matrix or rule by its name.")
    ] = None,
    json: Json = False,
) -> None:
    """List methods, fitters and measures; with a NAME its parameters, defaults and presets.

    Example: discreet methods

    Example: discreet methods cell-key
    """
    if name is None:
        listed = {kind: {n: _summary(kind, n) for n in registry.names(kind)} for kind in _KINDS}
        lines = []
        for kind, names in listed.items():
            lines += [f"{_plural(kind)}:", *(f"  {n}: {text}" for n, text in names.items())]
        answer({_plural(kind): names for kind, names in listed.items()}, json, "\n".join(lines))
        return
    found = [describe(kind, name) for kind in _KINDS if name in registry.names(kind)]
    if not found:
        every = [n for kind in _KINDS for n in registry.names(kind)]
        raise UnknownNameError("method, fitter or measure", name, every)
    summary = [
        {
            "kind": one.kind,
            "name": one.name,
            "summary": one.summary,
            "parameters": [
                dict(zip(("name", "default", "meaning"), p, strict=True)) for p in one.parameters
            ],
            "presets": dict(one.presets),
        }
        for one in found
    ]
    answer({"found": summary}, json, "\n\n".join(map(str, found)))


def describe(kind: str, name: str) -> Described:
    """A registered name with its parameters, those of the part that it hands others on to too."""
    target = registry.load(kind, name)
    rows = list(_parameters(target))
    presets: dict[str, Any] = {}
    for part in [row[0] for row in rows if row[0] in registry.PARTS]:
        below, usual = registry.PARTS[part]
        if usual is None or usual == name:
            continue
        inner = registry.load(below, usual)
        rows += [(n, d, m) for n, d, m in _parameters(inner) if n not in {r[0] for r in rows}]
        presets |= _presets(inner)
    presets |= _presets(target)
    shown = tuple((n, f"D={p.D}, V={p.V:g}, js={p.js}; {p.source}") for n, p in presets.items())
    return Described(kind, name, _summary(kind, name), tuple(rows), shown)


def _presets(target: Any) -> dict[str, Any]:
    """Presets that the module of a function has, for functions that take `preset=`."""
    if "preset" not in inspect.signature(target).parameters:
        return {}
    return dict(getattr(inspect.getmodule(target), "PRESETS", {}))


def _parameters(target: Any) -> list[tuple[str, str, str]]:
    said = _meanings(_docstring(target))
    given = getattr(target, "keywords", {})  # of one of a family
    rows = []
    for parameter in inspect.signature(target).parameters.values():
        if parameter.name in given:
            continue
        if parameter.default is parameter.empty:
            default = "needed"
        elif hasattr(parameter.default, "parameters") or "<factory>" in repr(parameter.default):
            default = "see presets"
        else:
            default = f"default {_plain(parameter.default)}"
        rows.append((parameter.name, default, said.get(parameter.name, "")))
    return rows


def _plain(value: Any) -> str:
    text = repr(value)
    return "none" if value is None else text


def _summary(kind: str, name: str) -> str:
    try:
        target = registry.load(kind, name)
    except DiscreetError as error:  # a plug-in that is broken
        return str(error)
    said = _without_marks(" ".join(_docstring(target).split("\n\n")[0].split()))
    given = getattr(target, "keywords", {})  # which of a family it is
    which = ", ".join(f"{option}={_plain(value)}" for option, value in given.items())
    return f"{said.removesuffix('.')} ({which})." if which else said


def _docstring(target: Any) -> str:
    return inspect.getdoc(getattr(target, "func", target)) or ""


def _meanings(docstring: str) -> dict[str, str]:
    """What the section `Args:` says of each parameter."""
    found: dict[str, str] = {}
    current, is_inside = "", False
    for line in docstring.splitlines():
        if _SECTION.match(line):
            is_inside, current = line == "Args:", ""
        elif is_inside and (entry := _ENTRY.match(line)):
            current = entry[1].strip("*")
            found[current] = entry[2]
        elif is_inside and current and line.startswith("    "):
            found[current] += f" {line.strip()}"
    return {name: _without_marks(text) for name, text in found.items()}


def _without_marks(text: str) -> str:
    return _MARKS.sub(lambda found: next(filter(None, found.groups()), ""), text)


def _plural(kind: str) -> str:
    return {"matrix": "matrices", "measure of records": "measures of records"}.get(kind, f"{kind}s")


def ptable(
    D: Annotated[int, typer.Option("--D", help="Largest move.")],
    V: Annotated[float, typer.Option("--V", help="Variance of the noise.")],
    js: Annotated[int, typer.Option(help="Counts 1..js are never published.")] = 0,
    pstay: Annotated[float | None, typer.Option(help="Least probability of no change.")] = None,
    variant: Annotated[str, typer.Option(help="'discreet' or 'ptable'.")] = "discreet",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the table: .csv or .json.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: .svg, .png or interactive .html.")
    ] = None,
    json: Json = False,
) -> None:
    """Design a perturbation table by maximum entropy and print its audit.

    Example: discreet ptable --D 5 --V 3 --js 2 --plot ptable.svg --out ptable.csv
    """
    law = choice(Variant, variant, "--variant")
    matrix = perturbation_table(D, V, js, pstay, variant=law)
    audit = matrix.audit()
    if out is not None:
        _write(matrix, out)
    if plot is not None:
        _draw(matrix, plot)
    summary = {
        "D": D,
        "V": V,
        "js": js,
        "mean": audit.mean.tolist(),
        "variance": audit.variance.tolist(),
        "stay": audit.stay.tolist(),
        "entropy": audit.entropy.tolist(),
        "epsilon": audit.epsilon,
        "delta": audit.delta,
    }
    written = "".join(f"\nwritten: {path}" for path in (out, plot) if path is not None)
    answer(summary, json, f"{audit}{written}")


def _write(matrix: TransitionMatrix, out: Path) -> None:
    ending = ending_of(out, (".csv", ".json"))
    with written_whole(out) as temporary:
        if ending == ".csv":
            matrix.to_ptable_csv(temporary)
        else:
            temporary.write_text(matrix.to_json(), encoding="utf-8", newline="\n")


def _draw(matrix: TransitionMatrix, path: Path) -> None:
    ending: Any = ending_of(path, (".svg", ".png", ".html"))
    chart = matrix.plot()
    inline = ending == ".html"  # the page loads nothing from elsewhere
    try:
        with written_whole(path) as temporary:
            chart.save(str(temporary), format=ending[1:], inline=inline)
    except ImportError:
        raise MissingDependencyError("drawing", "vl-convert-python", "plot") from None
