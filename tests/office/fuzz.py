"""Requests that nobody in their right mind would send, and what no answer to them may hold.

The data set on the fly has counts that are easy to recognise: every true count that is no protected
figure of any table is forbidden, in whatever form it is written.
"""

import io
import itertools
import json
import random
import re
import string
import zipfile
from dataclasses import replace
from urllib.parse import quote, quote_plus

import numpy as np

from discreet.serve import LiveSource
from tests.serve.records import RECIPE, small_country
from tests.serve.sites import ZEROS, small_site

SMALLEST = 10_000
ODD = [
    "", " ", "0", "-1", "1e309", "NaN", "null", "None", "true", "*", "%", "?", "..",
    "../../etc/passwd", "<script>alert(1)</script>", "'; DROP TABLE audit;--", '"', "\\", "\x00",
    "\r\nSet-Cookie: a=b", "\u202e", "é", "🦊", "\ud800", "{{7*7}}", "${jndi:x}", "a|b", "|",
    "|||", "x" * 300, "[", "]", "region[", "region[part", "region[part]]", "region[nowhere]",
    "top(2)", "bottom(-1)", "range(,)", "from()", "to(N)", "top(999999999999999999999)", "?" * 40,
    "*" * 40,
]  # fmt: skip
NAMES = ["region", "region[part]", "region[county]", "age", "sex"]
CODES = ["ALL", "N", "N1", "N1-1", "S", "ABROAD", "0-14", "15-64", "65+", "F", "M", "T"]
PARAMETERS = [
    "rows", "columns", "layers", "unit", "show", "totals", "sort", "chart", "lang", "edit",
    "pick.age", "where.age", "where.sex", "where.region", "group.age", "group.region",
    "layer.sex", "fold.region", "pick.", ".", "where", "page", "size", "page_size", "format",
    "layout", "labels", "separator", "valueCodes[age]", "valueCodes[sex]", "valueCodes[region]",
    "valueCodes[]", "codelist[region]", "outputFormat", "outputFormatParams", "stub", "heading",
    "query", "pastDays", "pageNumber",
]  # fmt: skip
VALUES = [
    "count", "weight", "row", "column", "total", "0", "1", "bars", "lines", "heat", "pyramid",
    "en", "nb", "A|0-14|15-64", "A|N|S", "json-stat2", "csv", "px", "xlsx", "html", "parquet",
    "wide", "long", "*", "agg_region_part", "vs_region", "UseTexts", "2",
]  # fmt: skip
SETS = ["once", "live", "live", "nowhere", "..", "%00"]
PATHS = [
    "/", "/about", "/health", "/static/style.css", "/admin", "/sign-in", "/api/",
    "/api/openapi.json", "/d/{}", "/d/{}/about", "/d/{}/table", "/d/{}/table", "/d/{}/table",
    "/d/{}/table.csv", "/d/{}/table.xlsx", "/d/{}/table.json", "/d/{}/table.px",
    "/d/{}/table.parquet", "/d/{}/chart.svg", "/d/{}/table.sdmx.csv", "/d/{}/table.exe",
    "/api/v1", "/api/v1/datasets", "/api/v1/datasets/{}", "/api/v1/datasets/{}/table",
    "/api/v1/datasets/{}/table", "/api/v1/datasets/{}/variables/region", "/api/v1/limits",
    "/api/v1/formats", "/api/pxweb/v2/config", "/api/pxweb/v2/navigation", "/api/pxweb/v2/tables",
    "/api/pxweb/v2/tables/{}", "/api/pxweb/v2/tables/{}/metadata", "/api/pxweb/v2/tables/{}/data",
    "/api/pxweb/v2/tables/{}/data", "/api/pxweb/v2/tables/{}/defaultselection",
    "/api/pxweb/v2/codelists/{}", "/api/pxweb/v2/savedqueries/{}", "/api/pxweb/v2/savedqueries",
]  # fmt: skip
HEADERS = {
    "Accept-Language": ["nb", "xx;q=9", ",,,;q=", b"\xc3\xa9\xff"],
    "Cookie": ["lang=nb", "lang=<script>", "discreet_session=a.b", "=;=;", "x" * 500],
    "If-None-Match": ["*", '"x"', "W/", ","],
    "Authorization": ["Bearer x", "Basic !!", "Bearer discreet_1_2"],
    "X-Forwarded-For": ["1.2.3.4", "x", "::1, ,"],
    "X-Remote-User": ["root"],
    "Range": ["bytes=0-10", "bytes=-"],
    "Accept": ["application/json", "text/html;q=x", "*/*"],
    "Accept-Encoding": ["gzip", "gzip;q=0", "br", ";;"],
    "Host": ["here", 'evil"><script>', "a:b:c"],
}
METHODS = ["GET"] * 30 + ["HEAD", "POST", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"]
_TRACE = re.compile(rb'Traceback|File "/|site-packages|\.py:\d+')
_GROUPED = re.compile(r"(?<![\w-])\d{1,3}(?:[,.\u00a0\u202f ]\d{3})+(?![\w-])")
_PLAIN = re.compile(r"(?<![\w-])\d+(?![\w-])")


def recognisable_site():
    """The small site, with counts on the fly that nobody takes for anything else."""
    records = small_country(zeros=ZEROS)
    counts = records.frame["n"]
    known = np.array([SMALLEST + 7_919 * k for k in range(1, len(counts) + 1)])
    records.frame["n"] = np.where(counts > 0, known, 0)
    site = small_site()
    live = replace(site.datasets["live"], source=LiveSource(RECIPE, records))
    return replace(site, datasets={**site.datasets, "live": live}), forbidden(records)


def forbidden(records):
    """True counts of all crossings that are no protected figure of any of them."""
    true, shown = set(), set()
    for size in (1, 2, 3):
        for names in itertools.combinations(("region", "age", "sex"), size):
            recipe = RECIPE.of("*".join(names))
            true |= {int(n) for n in recipe.tabulate(records).z}
            shown |= {int(n) for n in recipe.run(records).z}
    return frozenset(n for n in true - shown if n >= SMALLEST)


def requests(seed):
    """One odd request after another: method, path with its parameters, headers, content."""
    rng = random.Random(seed)
    while True:
        method = rng.choice(METHODS)
        path = rng.choice(PATHS).format(_coded(_some(rng, SETS, 0.9)))
        if rng.random() < 0.03:
            path += quote(rng.choice(ODD).encode("utf-8", "replace"), safe="/.")
        pairs = [_parameter(rng) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4, 8]))]
        asked = "&".join(f"{_coded(k)}={_coded(v)}" for k, v in pairs)
        headers = {
            name: rng.choice(values) for name, values in HEADERS.items() if rng.random() < 0.1
        }
        yield method, f"{path}?{asked}" if asked else path, headers, _content(rng, method)


def _parameter(rng):
    if rng.random() < 0.55:
        return rng.choice(("rows", "columns", "layers")), _some(rng, NAMES, 0.9)
    if rng.random() < 0.5:
        return _some(rng, PARAMETERS, 0.95), _some(rng, CODES, 0.9)
    return _some(rng, PARAMETERS, 0.95), _some(rng, VALUES, 0.85)


def _some(rng, usual, share):
    if rng.random() < share:
        return rng.choice(usual)
    if rng.random() < 0.8:
        return rng.choice(ODD)
    return "".join(rng.choices(string.printable, k=rng.randint(1, 40)))


def _coded(text):
    return quote_plus(text.encode("utf-8", "surrogatepass"), safe="[]|.")


def _content(rng, method):
    if method not in ("POST", "PUT", "PATCH"):
        return None
    selection = [
        {"variableCode": rng.choice(["age", "sex", "x"]), "valueCodes": [_some(rng, CODES, 0.7)]}
    ]
    return rng.choice(
        [
            b"", b"{", b"[]", b"null", b"\xff\xfe", b"a=b", b"9" * 5_000, b"[" * 3_000,
            json.dumps({"selection": selection}).encode(),
            json.dumps({"selection": selection, "tableId": rng.choice(SETS)}).encode(),
            json.dumps({"selection": 3, "placement": {"stub": None}}).encode(),
        ]
    )  # fmt: skip


def faults(response, secret_counts):
    """What is wrong with an answer; nothing, it is hoped."""
    found = []
    if response.status_code >= 500:
        found.append(f"status {response.status_code}")
    if _TRACE.search(response.content):
        found.append("a trace")
    if "content-security-policy" not in response.headers:
        found.append("no security headers")
    if any(c in value for value in response.headers.values() for c in "\r\n"):
        found.append("a broken header")
    leaked = numbers(_readable(response)) & secret_counts
    if leaked:
        found.append(f"true counts {sorted(leaked)[:3]}")
    return found


def numbers(text):
    """All whole numbers in a text, however their digits are grouped; digits of marks are none."""
    grouped = (re.sub(r"\D", "", n) for n in _GROUPED.findall(text))
    return {int(n) for n in itertools.chain(grouped, _PLAIN.findall(text)) if 5 <= len(n) <= 12}


def _readable(response):
    content = response.content
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return " ".join(archive.read(n).decode("utf-8", "replace") for n in archive.namelist())
    if content[:4] == b"PAR1":
        import pyarrow.parquet as pq

        return str(pq.read_table(io.BytesIO(content)).to_pylist())
    return content.decode("utf-8", "replace") + str(dict(response.headers))
