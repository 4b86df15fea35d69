"""The versioned interface for programs: data sets, their variables, tables, limits."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet import __version__
from discreet.release.formats.columns import present
from discreet.release.formats.json import document
from discreet.release.formats.write import LABELS, LAYOUTS, writers
from discreet.serve.answer import Answer
from discreet.serve.api import models
from discreet.serve.api.reply import (
    LARGEST_PAGE,
    ListPage,
    PageNumber,
    PageSize,
    TableDescriber,
    base_of,
    file_cube,
    file_reply,
    format_named,
    json_reply,
    query_of,
    reply,
    site_of,
)
from discreet.serve.api.saved import SavedQuery, snippets_of
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import by_detail
from discreet.serve.guard import LONGEST_QUERY
from discreet.serve.refusals import no_such
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.frame import Addresses
from discreet.tables.statement import plain_data

ROOT = "/api/v1"
JSON = "json"
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": models.ErrorModel, "description": "Refused, with what is allowed."}
    for status in (400, 401, 403, 404, 405, 414, 422, 429, 500, 503)
}
_RESPONSES[304] = {"description": "What the program has is still right."}
_FILES: dict[str, Any] = {writer.media_type.partition(";")[0]: {} for writer in writers()}
router = APIRouter(prefix=ROOT, tags=["Tables"], responses=_RESPONSES)
_FIELDS = ("name", "title", "edition", "updated", "closed")
_ABOUT_FIELDS = ("description", "topic", "date", "source", "licence", "contact")


@router.get("", response_model=models.IndexModel, summary="Where to start")
def index(request: Request) -> Response:
    """The addresses of this interface and of the others."""
    base = base_of(request)
    links = {
        "datasets": f"{base}{ROOT}/datasets",
        "limits": f"{base}{ROOT}/limits",
        "formats": f"{base}{ROOT}/formats",
        "openapi": f"{base}/api/openapi.json",
        "reference": f"{base}/api/",
        "pxweb": f"{base}/api/pxweb/v2",
    }
    title = current_site(request).title
    return json_reply(request, {"title": title, "version": __version__, "links": links})


@router.get("/datasets", response_model=models.DatasetList, summary="The data sets")
def datasets(
    request: Request,
    query: Annotated[str, Query(description="Words that title or description hold.")] = "",
    page: PageNumber = 1,
    page_size: PageSize = 100,
) -> Response:
    """The catalogue, page by page."""
    known = site_of(request).datasets.values()
    found = [dataset for dataset in known if dataset.holds(query.split())]
    part = ListPage(page, page_size, len(found))
    base = base_of(request)
    listed = [summary_json(dataset, base) for dataset in part.of(found)]
    told = {"datasets": listed, "page": part.to_json(), "links": part.links(request)}
    return json_reply(request, told)


@router.get("/datasets/{dataset}", response_model=models.DatasetModel, summary="A data set")
def dataset(request: Request, dataset: str) -> Response:
    """What is on offer, what may be asked, and what is done to the figures."""
    found = site_of(request).dataset(dataset)
    return json_reply(request, dataset_json(found, base_of(request)))


@router.get(
    "/datasets/{dataset}/variables/{detail}",
    response_model=models.VariableCodes,
    summary="The categories of a variable",
)
def variable(
    request: Request, dataset: str, detail: str, page: PageNumber = 1, page_size: PageSize = 10_000
) -> Response:
    """The categories of a variable, `region`, or of one level of it, `region[province]`."""
    found = site_of(request).dataset(dataset)
    named = by_detail(found.variables)
    if detail not in named:
        raise no_such("variable", detail, named, "Variables and levels", status=404)
    asked = named[detail]
    part = ListPage(page, page_size, len(asked.entries))
    codes = [{"code": e.code, "label": e.label, "depth": e.depth} for e in part.of(asked.entries)]
    told: dict[str, Any] = {"name": asked.name, "label": asked.variable.label, "detail": detail}
    told |= {"codes": codes, "page": part.to_json(), "links": part.links(request)}
    return json_reply(request, told)


@router.get(
    "/datasets/{dataset}/table",
    response_model=models.TableModel | models.JsonStat,
    summary="A table",
    responses={200: {"content": _FILES, "description": "The table, in the format asked for."}},
    openapi_extra={
        "parameters": [
            *models.TABLE_PARAMETERS,
            *models.FILE_PARAMETERS,
            models.LANGUAGE_PARAMETER,
        ],
    },
)
def table(
    request: Request,
    dataset: str,
    format: Annotated[
        str, Query(description="A format of /api/v1/formats; JSON comes page by page.")
    ] = JSON,
    page: PageNumber = 1,
    page_size: PageSize = 10_000,
) -> Response:
    """The table that the parameters ask for; the same ones as in the address of its page."""
    writer = format_named(format)
    answer = site_of(request).dataset(dataset).answer(query_of(request))
    if format != JSON:
        headers = {}
        if format == "csv":
            metadata = _in_format(request, "csvw")
            headers["Link"] = f'<{metadata}>; rel="describedby"; type="application/csvm+json"'
        return file_reply(request, answer, writer, _in_format(request, "csv"), headers)
    return json_reply(request, _page_of(request, answer, page, page_size))


@router.get(
    "/datasets/{dataset}/query.toml",
    response_class=Response,
    summary="A table as a saved query",
    responses={200: {"content": {"application/toml": {}}, "description": "A TOML file."}},
    openapi_extra={"parameters": models.TABLE_PARAMETERS},
)
def saved_query(request: Request, dataset: str) -> Response:
    """A small file that `discreet replay` makes the same table from."""
    found = site_of(request).dataset(dataset)
    query = found.answer(query_of(request)).query
    saved = SavedQuery(base_of(request), found.name, found.edition, found.title, query)
    headers = {"Content-Disposition": f'attachment; filename="{found.name}-query.toml"'}
    return reply(request, saved.text.encode(), "application/toml", headers)


@router.get(
    "/datasets/{dataset}/snippets",
    response_model=models.SnippetList,
    summary="A table in programs",
    openapi_extra={"parameters": models.TABLE_PARAMETERS},
)
def snippets(request: Request, dataset: str) -> Response:
    """Python, R and curl that return the table."""
    answer = site_of(request).dataset(dataset).answer(query_of(request))
    found = snippets_of(TableDescriber.of(request), answer)
    listed = [{"name": name, "text": text} for name, text in found]
    return json_reply(request, {"snippets": listed})


@router.get("/limits", response_model=models.LimitsModel, summary="Limits, citation, contact")
def limits(request: Request) -> Response:
    """Everything that limits a program, in one place."""
    rate = request.app.state.office.config.accounts
    return json_reply(request, limits_json(current_site(request), rate.rate, rate.burst))


@router.get("/formats", response_model=models.FormatList, summary="File formats")
def formats(request: Request) -> Response:
    """The formats of tables, and how they can be laid out."""
    names = models.FormatModel.model_fields
    listed = [{name: getattr(writer, name) for name in names} for writer in writers()]
    return json_reply(request, {"formats": listed, "layout": LAYOUTS, "labels": LABELS})


def summary_json(dataset: Dataset, base: str) -> dict[str, Any]:
    """A data set as the catalogue shows it."""
    at = Addresses(base, dataset.name)
    return {
        **{name: getattr(dataset, name) for name in _FIELDS},
        **{name: getattr(dataset.about, name) for name in _ABOUT_FIELDS},
        "links": {
            "self": at.programs,
            "table": f"{at.programs}/table?{dataset.first.address}",
            "page": at.start,
        },
    }


def dataset_json(dataset: Dataset, base: str) -> dict[str, Any]:
    """All that a program needs to ask for tables."""
    address = Addresses(base, dataset.name).programs
    return {
        **summary_json(dataset, base),
        "mode": dataset.source.mode,
        "units": list(dataset.units),
        "measures": [
            {
                "name": measure.name,
                "title": measure.title,
                "mean_of": measure.sum if measure.is_mean else None,
                "crossings": [list(names) for names in measure.crossings],
            }
            for measure in dataset.measures.values()
        ],
        "variables": [
            {
                "name": variable.name,
                "label": variable.label,
                "details": [
                    {"name": d.name, "label": d.label, "cells": d.cells} for d in variable.details
                ],
                "codes": f"{address}/variables/{variable.details[0].name}",
            }
            for variable in dataset.variables
        ],
        "footnotes": list(dataset.about.footnotes),
        "limits": plain_data(dataset.policy.public()),
        "first_table": dataset.first.address,
        "statement": dataset.statement.to_json(),
    }


def limits_json(site: Site, rate: float, burst: int) -> dict[str, Any]:
    """Everything that limits a program, and whom to ask and cite."""
    config = site.config
    return {
        "title": site.title,
        "contact": config.contact,
        "citation": f"{site.title}: TITLE OF THE TABLE. DATA SET, edition EDITION. Protected "
        "figures, retrieved DATE from ADDRESS. Every table brings its own.",
        "languages": list(config.languages),
        "max_query_length": LONGEST_QUERY,
        "max_page_size": LARGEST_PAGE,
        "rate": {"requests_per_second": rate, "burst": burst},
        "formats": [writer.name for writer in writers()],
        "datasets": [
            {"name": d.name, "closed": d.closed, "limits": plain_data(d.policy.public())}
            for d in site.datasets.values()
        ],
    }


def _in_format(request: Request, name: str) -> str:
    """The address of the same table in another format."""
    given = [(k, v) for k, v in request.query_params.multi_items() if k != "format"]
    path = f"{base_of(request)}{request.scope['state']['path']}"
    return f"{path}?{urlencode([*given, ('format', name)])}"


def _page_of(request: Request, answer: Answer, page: int, page_size: int) -> dict[str, Any]:
    cube, describer = file_cube(answer), TableDescriber.of(request)
    options = describer.options(answer)
    places = present(cube)
    part = ListPage(page, page_size, len(places))
    links = part.links(request)
    links |= {
        "page": options.about.address,
        "metadata": Addresses(describer.base, answer.dataset.name).programs,
    }
    found = document(cube, options, places[(page - 1) * page_size : page * page_size])
    return {**found, "page": part.to_json(), "links": links}
