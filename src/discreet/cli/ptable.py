"""`discreet ptable`: design a perturbation table and see what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli.common import Json, answer
from discreet.errors import MissingDependencyError, ParameterError
from discreet.files import written_whole

if TYPE_CHECKING:
    from discreet.noise import TransitionMatrix


_FORMATS: dict[str, Literal["svg", "png", "html"]] = {".svg": "svg", ".png": "png", ".html": "html"}


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
    from discreet.noise import perturbation_table

    matrix = perturbation_table(D, V, js, pstay, variant=variant)  # type: ignore[arg-type]  # checked there
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
    if out.suffix not in (".csv", ".json"):
        raise ParameterError(f"cannot write {out.name!r}: the name must end in .csv or .json.")
    with written_whole(out) as temporary:
        if out.suffix == ".csv":
            matrix.to_ptable_csv(temporary)
        else:
            temporary.write_text(matrix.to_json(), encoding="utf-8")


def _draw(matrix: TransitionMatrix, path: Path) -> None:
    if path.suffix not in _FORMATS:
        raise ParameterError(
            f"cannot draw {path.name!r}: the name must end in .svg, .png or .html."
        )
    chart = matrix.plot()
    inline = path.suffix == ".html"  # the page loads nothing from elsewhere
    try:
        with written_whole(path) as temporary:
            chart.save(str(temporary), format=_FORMATS[path.suffix], inline=inline)
    except ImportError:
        raise MissingDependencyError("drawing", "vl-convert-python", "plot") from None
