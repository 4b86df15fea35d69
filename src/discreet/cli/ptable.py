"""`discreet ptable`: design a perturbation table and see what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.common import Json, answer, choice
from discreet.errors import MissingDependencyError
from discreet.files import ending_of, written_whole

if TYPE_CHECKING:
    from discreet.noise import TransitionMatrix


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
    from discreet.noise import perturbation_table  # start-up time
    from discreet.noise.entropy import Variant  # start-up time

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
            temporary.write_text(matrix.to_json(), encoding="utf-8")


def _draw(matrix: TransitionMatrix, path: Path) -> None:
    ending: Any = ending_of(path, (".svg", ".png", ".html"))
    chart = matrix.plot()
    inline = ending == ".html"  # the page loads nothing from elsewhere
    try:
        with written_whole(path) as temporary:
            chart.save(str(temporary), format=ending[1:], inline=inline)
    except ImportError:
        raise MissingDependencyError("drawing", "vl-convert-python", "plot") from None
