"""Answers of the table builder: pages, tables, charts, files, interfaces, refusals, accounts."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode, urljoin

import tomli_w

from recorded.site import Server, make_site, run, serving
from recorded.text import content_text, normalised

Pairs = list[tuple[str, str]]
LEFT_OUT = {
    "date",
    "content-length",
    "last-modified",
    "transfer-encoding",
}  # of headers; contents are recorded
ENDINGS = [
    "csv",
    "csv-metadata.json",
    "xlsx",
    "parquet",
    "json",
    "jsonstat.json",
    "sdmx.csv",
    "px",
    "html",
]
FORMATS = ["csv", "csvw", "xlsx", "parquet", "json", "json-stat", "sdmx-csv", "px", "html"]
PLAIN = "/?=&%|[]*(),+-_.:<>"  # characters of addresses that are sent as they are
CHARTS = ("bars", "lines", "heat", "pyramid")

LAYOUTS: dict[str, list[Pairs]] = {
    "census": [
        [],
        [("rows", "region[province]")],
        [("rows", "region"), ("columns", "sex")],
        [("rows", "age[broad_age]"), ("columns", "sex")],
        [("rows", "age"), ("columns", "sex")],
        [("columns", "marital")],
        [("rows", "region[province]"), ("rows", "age[broad_age]"), ("columns", "sex")],
        [("rows", "marital"), ("columns", "age[broad_age]"), ("layers", "sex")],
        [("rows", "region[province]"), ("columns", "sex"), ("columns", "marital")],
    ],
    "rounded": [
        [("rows", "region[province]")],
        [("rows", "region[province]"), ("columns", "sex")],
        [("rows", "age[broad_age]"), ("columns", "region[province]")],
        [("rows", "sex"), ("layers", "region[province]")],
    ],
    "keyed": [
        [("rows", "region[province]"), ("columns", "sex")],
        [("rows", "region[district]"), ("columns", "age[broad_age]")],
        [("rows", "education"), ("columns", "sex")],
        [("rows", "age"), ("columns", "sex")],
        [("rows", "education[education_level]"), ("columns", "age[broad_age]"), ("layers", "sex")],
    ],
    "survey": [
        [("rows", "education"), ("columns", "sex")],
        [("rows", "industry[section]")],
        [("rows", "age"), ("columns", "sex")],
        [("rows", "region[province]"), ("columns", "occupation[major_group]")],
    ],
}
VIEWS: list[Pairs] = [
    [("show", "row")],
    [("show", "column")],
    [("show", "total"), ("totals", "0")],
    [("totals", "0")],
    [("sort", "-F")],
    [("sort", "TOTAL")],
    [("chart", "bars"), ("lang", "nb")],
    [("chart", "lines"), ("show", "row")],
    [("chart", "heat")],
    [("chart", "pyramid"), ("totals", "0")],
    [("where.sex", "F")],
    [("where.age", "Y_LT15"), ("where.age", "Y_GE65")],
    [("pick.sex", "M"), ("show", "column")],
    [("pick.region", "A"), ("pick.region", "B"), ("sort", "F")],
    [("group.region", "Both|A|B")],
    [("group.region", "The west|A|B"), ("lang", "nb")],
    [("group.age", "Young|Y_LT15|Y15-24"), ("show", "total")],
    [("layer.sex", "F")],
    [("layer.region", "B")],
    [("fold.region", "A"), ("fold.age", "Y_LT15")],
    [("unit", "weight")],
    [("unit", "count")],
    [("lang", "nb")],
    [("edit", "pick.sex")],
    [("where.sex", "F"), ("edit", "where.sex")],
    [("new.of", "age"), ("new.label", "Some"), ("new.code", "Y_LT15"), ("edit", "group.age")],
    [("edit", "group.region"), ("lang", "nb")],
]
WRONG: list[str] = [
    "rows=regio",
    "rows=region[town]",
    "rows=region&columns=region",
    "rows=region&rows=sex&columns=marital&layers=age",
    "rows=region&columns=age&layers=marital",
    "rows=age&columns=sex",
    "rows=sex&pick.sex=X",
    "rows=sex&where.sex=X",
    "rows=sex&where.height=1",
    "rows=sex&group.sex=both",
    "rows=sex&group.sex=Female|M",
    "rows=sex&group.sex=Total|F|M",
    "rows=sex&show=half",
    "rows=sex&show=row",
    "rows=sex&chart=pie",
    "rows=sex&chart=pyramid",
    "rows=sex&sort=Q",
    "rows=sex&totals=2",
    "rows=sex&unit=euro",
    "rows=sex&lang=xx",
    "rows=sex&where.age=Y00-04&where.region=H",
    "rows=region[district]&where.sex=F&where.age=Y_LT15",
    "row=sex",
    "rows=sex&where.=1",
    "rows=sex&columns=" + "x" * 300,
    "rows=%00",
    "layer.sex=Q&layers=sex",
]
PXWEB = "/api/pxweb/v2"
PX_FORMATS = ("json-stat2", "csv", "px", "xlsx", "html", "parquet", "json-px", "none")
SELECTIONS: list[Pairs] = [
    [],
    [("valueCodes[sex]", "*")],
    [("valueCodes[sex]", "F,M"), ("valueCodes[region]", "A,B")],
    [("valueCodes[region]", "*"), ("codelist[region]", "agg_{}_region_province")],
    [("valueCodes[age]", "top(3)")],
    [("valueCodes[age]", "bottom(2)"), ("valueCodes[sex]", "?")],
    [("valueCodes[age]", "range(Y05-09,Y20-24)")],
    [("valueCodes[age]", "from(Y65-69)"), ("valueCodes[ContentsCode]", "*")],
    [("valueCodes[age]", "to(Y10-14)"), ("heading", "age"), ("stub", "sex")],
    [("valueCodes[sex]", "X")],
    [("valueCodes[height]", "*")],
    [("codelist[region]", "agg_no"), ("valueCodes[region]", "*")],
    [("valueCodes[region]", "*"), ("valueCodes[age]", "*"), ("valueCodes[sex]", "*")],
]


def answers(only: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every answer, over HTTP from a server that is started by the command line."""
    with tempfile.TemporaryDirectory(prefix="recordings-site-") as place:
        folder = Path(place)
        site = make_site(folder)
        with serving("site.toml", folder=folder) as server:
            for address in addresses():
                name = f"builder{address}"
                if name.startswith(only):
                    yield name, asked(server, address)
            if "builder/requests".startswith(only):
                yield from _other_requests(server)
        if any("builder/office".startswith(o) or o.startswith("builder/office") for o in only):
            yield from _office(folder, site)
        if "builder/records".startswith(only):
            yield from _records_alone(folder)


def addresses() -> list[str]:
    """All addresses that are asked for, each once."""
    found = [*_fixed(), *_listings()]
    for dataset, layouts in LAYOUTS.items():
        found += _pages(dataset)
        found += _tables(dataset, layouts)
        found += [f"/d/{dataset}/table?{wrong}" for wrong in WRONG]
        found += [f"/api/v1/datasets/{dataset}/table?{wrong}" for wrong in WRONG]
        found += _pxweb(dataset)
    found += [each for each in _pages("private") if not re.match(r"/d/private(\?|$)", each)]
    found += [f"{PXWEB}/tables/private/metadata"]
    found += [f"/d/private/table?{wrong}" for wrong in WRONG if "age" in wrong and "sex" in wrong]
    return list(dict.fromkeys(found))


def _fixed() -> list[str]:
    paths = ["/", "/about", "/health", "/sign-in", "/admin", "/admin/log.csv", "/nowhere", "/d/no"]
    paths += [
        "/d/no/table",
        "/d/no/table.csv",
        "/d/census/table.doc",
        "/d/census/",
        "/api",
        "/api/",
    ]
    paths += ["/api/openapi.json", "/static/style.css", "/static/builder.js", "/static/icon.svg"]
    paths += ["/?query=census", "/?query=zzz", "/robots.txt", "/favicon.ico", "/static/no"]
    in_both = ["/", "/about", "/nowhere", "/sign-in", "/d/no"]
    return [*paths, *(f"{path}?lang={lang}" for path in in_both for lang in ("nb", "en", "xx"))]


def _listings() -> list[str]:
    own = ["", "/datasets", "/datasets?page_size=2", "/datasets?page_size=2&page=2", "/limits"]
    own += ["/datasets?query=census", "/datasets?page=99", "/datasets?page=x", "/formats", "/no"]
    own += ["/datasets/no", "/datasets?lang=nb", "/limits?lang=nb", "/datasets?page_size=0"]
    other = ["/config", "/navigation", "/navigation/no", "/tables", "/tables?query=census", "/no"]
    other += ["/tables?pageSize=2&pageNumber=2", "/tables/no", "/codelists/no", "/config?lang=nb"]
    other += ["/tables?lang=nb", "/tables?lang=xx", "/savedqueries/no", "/tables?pageSize=0"]
    return [*(f"/api/v1{path}" for path in own), *(f"{PXWEB}{path}" for path in other)]


def _pages(dataset: str) -> list[str]:
    langs = ("", "?lang=nb")
    found = [f"/d/{dataset}{rest}{lang}" for rest in ("", "/about") for lang in langs]
    found += [f"/api/v1/datasets/{dataset}{lang}" for lang in langs]
    for detail in ("region", "region[province]", "age", "age[broad_age]", "sex", "marital", "no"):
        address = f"/api/v1/datasets/{dataset}/variables/{quote(detail)}"
        found += [address, f"{address}?page_size=3&page=2&lang=nb"]
    return found


def _tables(dataset: str, layouts: list[Pairs]) -> list[str]:
    """Each layout plain in every form, and crossed with each view in a few forms by turns."""
    found = []
    for layout in layouts:
        query = urlencode(layout)
        found += [f"/d/{dataset}/table?{query}"]
        found += [f"/d/{dataset}/table.{ending}?{query}" for ending in ENDINGS]
        found += [f"/d/{dataset}/chart.svg?{query}&chart={chart}" for chart in CHARTS]
        api = f"/api/v1/datasets/{dataset}"
        found += [f"{api}/{kind}?{query}" for kind in ("table", "snippets", "query.toml")]
        found += [f"{api}/table?{query}&page_size=5&page=2"]
    forms = itertools.cycle(_forms(dataset))
    for layout, view in itertools.product(layouts[-5:], VIEWS):
        query = urlencode([*layout, *view])
        found += [f"/d/{dataset}/table?{query}", next(forms).format(query)]
    for layout, options in itertools.product(layouts[-2:], _file_options()):
        query = urlencode([*layout, *options])
        found += [f"/api/v1/datasets/{dataset}/table?{query}"]
    return found


def _forms(dataset: str) -> list[str]:
    found = [f"/d/{dataset}/chart.svg?{{}}"]
    found += [f"/d/{dataset}/table.{ending}?{{}}" for ending in ENDINGS]
    kinds = ("table", "snippets", "query.toml")
    return [*found, *(f"/api/v1/datasets/{dataset}/{kind}?{{}}" for kind in kinds)]


def _file_options() -> list[Pairs]:
    found: list[Pairs] = [[("format", each)] for each in (*FORMATS, "doc")]
    laid_out = itertools.product(("csv", "xlsx"), ("long", "wide"), ("codes", "labels", "both"))
    found += [[("format", f), ("layout", l), ("labels", b)] for f, l, b in laid_out]
    return [*found, [("format", "csv"), ("layout", "tall")], [("labels", "no"), ("format", "px")]]


def _pxweb(dataset: str) -> list[str]:
    table = f"{PXWEB}/tables/{dataset}"
    found = [f"{table}{rest}" for rest in ("", "/metadata", "/metadata?lang=nb", "?lang=nb")]
    found += [f"{table}/defaultselection", f"{PXWEB}/codelists/agg_{dataset}_region_province"]
    for selection in SELECTIONS:
        query = urlencode([(name, value.format(dataset)) for name, value in selection])
        found += [f"{table}/data?{query}"]
    few = urlencode([("valueCodes[sex]", "*"), ("valueCodes[age]", "Y_LT15,Y_GE65")])
    found += [f"{table}/data?{few}&outputFormat={each}" for each in PX_FORMATS]
    for parameter in ("UseCodes", "UseTexts", "UseCodesAndTexts", "IncludeTitle", "SeparatorTab"):
        found += [f"{table}/data?{few}&outputFormat=csv&outputFormatParams={parameter}"]
    return found


def asked(server: Server, path: str, **options: str) -> str:
    """One answer as text; where it leads to the one address of a table, that answer as well."""
    status, headers, content = server.ask(quote(path, safe=PLAIN), **options)
    text = _answer_text(path, status, headers, content)
    if status != 303 or options.get("method", "GET") != "GET":
        return text
    if "set-cookie" in headers:
        options["cookie"] = headers["set-cookie"].split(";")[0]
    target = urljoin(path, headers["location"])
    return f"{text}\n\n{_answer_text(target, *server.ask(target, **options))}"


def _answer_text(path: str, status: int, headers: dict[str, str], content: bytes) -> str:
    """Status, headers and content, without what belongs to the moment."""
    shown = [f"{name}: {headers[name]}" for name in sorted(headers) if name not in LEFT_OUT]
    text = content_text(content, path)
    if content and "json" in headers.get("content-type", ""):
        text = json.dumps(json.loads(content), indent=1, ensure_ascii=False)
    return normalised(_stripped("\n".join([f"{status}", *shown, "", text])))


def _stripped(text: str) -> str:
    """Without tokens, cookies, and tags of answers whose content has today's date in it."""
    text = re.sub(r"(?m)^etag: .*$", "etag: <TAG>", text)
    text = re.sub(r"(?m)^(set-cookie: [^=]+=)[^;]+", r"\1<COOKIE>", text)
    text = re.sub(r"; expires=[^;]+", "; expires=<TIME>", text)
    return re.sub(r'(name="form" value=")[^"]+', r"\1<TOKEN>", text)


def _other_requests(server: Server) -> Iterator[tuple[str, str]]:
    """Other methods, headers, conditions, and queries that are sent as bodies."""
    page = "/d/census/table?rows=region%5Bprovince%5D&columns=sex"
    data, as_json = f"{PXWEB}/tables/census/data", {"content_type": "application/json"}
    chosen = {"selection": [{"variableCode": "sex", "valueCodes": ["*"]}]}
    saved = {"tableId": "census", "language": "en", "selection": chosen}
    yield "builder/requests/norwegian", asked(server, page, accept_language="nb")
    yield "builder/requests/cookie", asked(server, page, cookie="lang=nb")
    yield "builder/requests/partial", asked(server, page, x_requested_with="fetch")
    yield "builder/requests/long", asked(server, f"/d/census/table?rows={'x' * 9000}")
    for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        for path in ("/", page, "/api/v1", data):
            yield f"builder/requests/{method}{path}", asked(server, path, method=method)
    tag = server.ask(page)[1].get("etag", "")
    yield "builder/requests/unchanged", asked(server, page, if_none_match=tag)
    yield "builder/requests/zipped", f"{server.ask(page, accept_encoding='gzip')[0]}"
    for name, body in {"chosen": chosen, "empty": {}, "wrong": {"selection": 1}}.items():
        sent = {"method": "POST", "body": json.dumps(body), **as_json}
        yield f"builder/requests/data-{name}", asked(server, data, **sent)
    sent = {"method": "POST", "body": json.dumps(saved), **as_json}
    kept = asked(server, f"{PXWEB}/savedqueries", **sent)
    yield "builder/requests/saved", kept
    if found := re.search(r'"id": "([^"]+)"', kept):
        for rest in ("", "/data", "/data?outputFormat=csv", "/selection"):
            path = f"{PXWEB}/savedqueries/{found.group(1)}{rest}"
            yield f"builder/requests/query{rest}", asked(server, path)


def _office(folder: Path, site: Path) -> Iterator[tuple[str, str]]:
    """A site with accounts: who may ask for what, the custodian's page, the audit log."""
    described = tomllib.loads(site.read_text())
    described["accounts"] = {"who": "tokens", "rate": 0, "analysts_only": ["keyed"]}
    described["audit"] = {"store": "accounts.db"}
    (folder / "office.toml").write_text(tomli_w.dumps(described))
    tokens = {}
    for who, role in (("vera", "viewer"), ("anna", "analyst"), ("carl", "custodian")):
        said = run("token", "add", who, "--role", role, "--site", "office.toml", folder=folder)
        tokens[who] = said.split()[-1]
    paths = [
        "/",
        "/d/census/table?rows=sex",
        "/d/keyed/table?rows=sex",
        "/api/v1",
        "/health",
        "/sign-in",
    ]
    paths += ["/api/v1/datasets/keyed/table?rows=sex", f"{PXWEB}/tables", "/about?lang=nb"]
    with serving("office.toml", folder=folder) as server:
        for who, path in itertools.product(("nobody", *tokens), paths):
            head = {"authorization": f"Bearer {tokens[who]}"} if who in tokens else {}
            yield f"builder/office/{who}{path}", asked(server, path, **head)
        wrong = asked(server, "/", authorization="Bearer wrong")
        yield "builder/office/wrong", wrong
        yield from _signed_in(server, tokens["carl"])
    shown = run("log", "usage", "--site", "office.toml", folder=folder)
    yield "builder/office/usage", _without_times(shown)
    run("log", "export", "--site", "office.toml", "--out", "log.csv", folder=folder)
    yield "builder/office/log", _without_times((folder / "log.csv").read_text())


def _signed_in(server: Server, token: str) -> Iterator[tuple[str, str]]:
    """What a custodian does in a browser: signs in, looks, closes a data set, signs out."""

    def sent(path: str, *, seen_on: str, cookie: str = "", **fields: str) -> dict[str, str]:
        page = server.ask(seen_on, cookie=cookie)[2].decode()
        mark = re.search(r'name="form" value="([^"]+)"', page)
        body = urlencode({**fields, "form": mark.group(1) if mark else ""})
        kind = "application/x-www-form-urlencoded"
        return {
            "path": path,
            "method": "POST",
            "body": body,
            "cookie": cookie,
            "content_type": kind,
        }

    yield (
        "builder/office/wrong token",
        asked(server, **sent("/sign-in", seen_on="/sign-in", token="wrong")),
    )
    _, headers, _ = server.ask(**sent("/sign-in", seen_on="/sign-in", token=token))
    cookie = headers.get("set-cookie", "").split(";")[0]
    yield "builder/office/signed in", headers.get("location", "")
    for path in ("/", "/admin", "/admin?lang=nb", "/admin/log.csv", "/d/keyed/table?rows=sex"):
        page = asked(server, path, cookie=cookie)
        yield f"builder/office/custodian{path}", _without_times(page)
    for closed, dataset in (("1", "census"), ("0", "census"), ("1", "no")):
        form = sent(
            "/admin/switch", seen_on="/admin", cookie=cookie, dataset=dataset, closed=closed
        )
        yield f"builder/office/switch/{dataset}/{closed}", asked(server, **form)
        page = asked(server, f"/d/{dataset}/table?rows=sex", cookie=cookie)
        yield f"builder/office/switched/{dataset}/{closed}", page
    form = sent("/admin/reload", seen_on="/admin", cookie=cookie)
    yield "builder/office/reload", asked(server, **form)
    yield "builder/office/foreign", asked(server, "/admin/reload", method="POST", cookie=cookie)
    form = sent("/sign-out", seen_on="/admin", cookie=cookie)
    yield "builder/office/out", asked(server, **form)


def _without_times(text: str) -> str:
    """Without milliseconds, pseudonyms of the day, and the order of rows that follows from them."""
    text = normalised(text)
    text = re.sub(r"\b\d+([.,]\d+)? ?ms\b", "<MS>", text)
    text = re.sub(r"(?m),\d+(\.\d+)?$", ",<MS>", text)
    text = re.sub(r"\bguest-\w+|visitor-\w+", "<VISITOR>", text)
    text = re.sub(r"<td[^>]*>\s*[\d.,\xa0 ]+\s*</td>", "<td>NUMBER</td>", text)
    runs = itertools.groupby(text.splitlines(), key=lambda line: '<tr><th scope="row">' in line)
    return "\n".join(line for is_row, run in runs for line in (sorted(run) if is_row else run))


def _records_alone(folder: Path) -> Iterator[tuple[str, str]]:
    """A file of records served on the fly, without a site's file."""
    options = ["--codes", "codes/codes.toml", "--id", "person_id", "--secret", "keys.secret"]
    source = next(folder.glob("census-*.parquet")).name
    with serving(source, "--by", "sex*age", *options, "--title", "Alone", folder=folder) as server:
        for path in (
            "/",
            "/about",
            "/d/census-3000-1/table?rows=sex",
            "/d/census-3000-1/table.csv?rows=age",
        ):
            yield f"builder/records{path}", asked(server, path)
