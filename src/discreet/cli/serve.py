"""`discreet serve`: a table builder over confidential records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.common import progress_bar, say
from discreet.cli.records import UNWEIGHTED, LedgerFile, Records, Weight, with_options
from discreet.design.release import WEIGHT
from discreet.errors import ParameterError
from discreet.recipe import Choice, Recipe
from discreet.serve.settings import Settings, help_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from discreet.design.formula import Margins
    from discreet.microdata.microdata import Microdata

DEFAULT_METHOD = Choice("cell-key", {"D": 5, "V": 3, "js": 2})


def _option(name: str) -> Any:
    return typer.Option(help=help_of(name), show_default=False)


@with_options
def serve(
    *,
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    recipe: Annotated[Path | None, typer.Option(help="A recipe.toml; else cell keys.")] = None,
    by: Annotated[str | None, typer.Option(help="What is on offer, e.g. 'region*age*sex'.")] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(help="VARIABLE=FILE with a hierarchy (.hrc, …); may be repeated."),
    ] = None,
    records: Annotated[Records, UNWEIGHTED],
    ledger: LedgerFile = None,
    weight: Weight = None,
    grid: Annotated[
        float | None, typer.Option(help="Publish weighted counts in steps of this public weight.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with settings.")] = None,
    host: Annotated[str | None, _option("host")] = None,
    port: Annotated[int | None, _option("port")] = None,
    root_path: Annotated[str | None, _option("root_path")] = None,
    title: Annotated[str | None, _option("title")] = None,
    max_variables: Annotated[int | None, _option("max_variables")] = None,
    max_cells: Annotated[int | None, _option("max_cells")] = None,
    kept_tables: Annotated[int | None, _option("kept_tables")] = None,
) -> None:
    """Let visitors put protected tables together in their browser, until Ctrl-C.

    Example: discreet serve people.csv --by "region*age*sex" --codes codes.toml --id person_id
    --secret keys.secret

    Example: discreet serve survey.csv --by "region*sex" --codes codes.toml --id person_id
    --secret keys.secret --weight w --grid 100
    """
    from discreet.serve.run import address_of, listen, require_web, serve_until_stopped

    require_web()
    given = {
        "host": host,
        "port": port,
        "root_path": root_path,
        "title": title,
        "max_variables": max_variables,
        "max_cells": max_cells,
        "kept_tables": kept_tables,
    }
    settings = (Settings() if config is None else Settings.read(config)).changed(given)
    data = records.open(source, hierarchies=hierarchy, weight=weight, ledger=ledger)
    with progress_bar():
        app = site(data, plan(data, recipe, by, grid), settings)
    listening = listen(settings.host, settings.port)
    say(f"The table builder answers at {address_of(listening)} (stop it with Ctrl-C).")
    serve_until_stopped(app, listening, settings.root_path)


def plan(data: Microdata, recipe: Path | None, by: str | None, grid: float | None = None) -> Recipe:
    """How tables are made, and what is on offer: `by`, the recipe's margins, or the code lists."""
    if recipe is not None:
        if grid is not None:
            raise ParameterError("the recipe says how weights are published; leave out --grid.")
        found = Recipe.read(recipe)
        return found if by is None else found.of(by)
    offered = [(name,) for name in data.hierarchies if name in data.dimensions]
    if by is None and not offered:
        raise ParameterError(
            "nothing says which variables are on offer. Name them with --by 'region*sex', or in "
            "the margins of a recipe, or give code lists with --codes."
        )
    return _default_plan(by or offered, data.weight is not None, grid)


def _default_plan(margins: Margins, has_weights: bool, grid: float | None) -> Recipe:
    """Cell keys, on counts or on weighted counts."""
    if has_weights != (grid is not None):
        raise ParameterError(
            "--weight and --grid go together: --grid is the public weight that one step of noise "
            "stands for (population over sample size). Leave out both to count records."
        )
    if grid is None:
        return Recipe(margins, DEFAULT_METHOD)
    parameters = {**DEFAULT_METHOD.parameters, "grid": grid}
    return Recipe(margins, replace(DEFAULT_METHOD, parameters=parameters), unit=WEIGHT)


def site(data: Microdata, recipe: Recipe, settings: Settings) -> FastAPI:
    """The application that serves the data."""
    from discreet.serve.app import make_app
    from discreet.serve.source import RecipeSource

    return make_app(RecipeSource(recipe, data, settings.kept_tables), settings)
