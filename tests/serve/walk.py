"""A visitor who follows links at random, and checks every page and file on the way.

`python -m tests.serve.walk SEED STEPS` repeats a walk over the small site.
"""

import asyncio
import random
import re
import sys
from collections import Counter
from html import unescape
from urllib.parse import parse_qsl, urlencode, urljoin

import httpx
import lxml.etree
import lxml.html

from discreet.serve import Office, Query, make_app
from discreet.serve.data.source import by_detail
from tests.serve.readers import SHOWN, WHOLE, csv_values, number
from tests.serve.sites import small_site, sums_of_once

LINK = re.compile(r'<a\b[^>]*\bhref="([^"#]+)"')
HERE = "http://here"
CHARTS = ("none", "bars", "lines", "heat", "pyramid")
ODD = ("A group", "=1+1", "\u202eleft", 'a "b" & <c>', "x\x01\uffff y", "1,5", "ÅSE\n;", "#")


class FaultError(AssertionError):
    """Something a visitor should not meet, with the address where it was met."""


class Walk:
    """A random walk over a site, without a network.

    Args:
      app: The application.
      datasets: Its data sets by name.
      seed: Draws the steps.
    """

    def __init__(self, app, datasets, seed):
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.datasets, self.random, self.seen = datasets, random.Random(seed), Counter()

    def run(self, steps):
        """Go so many steps; what was met is counted in `seen`."""
        asyncio.run(self._go(steps))
        return self.seen

    async def _go(self, steps):
        async with httpx.AsyncClient(
            transport=self.transport, base_url=HERE, follow_redirects=True
        ) as self.client:
            links = []
            for _ in range(steps):
                if links and self.random.random() < 0.6:
                    links = await self.follow(self.random.choice(links)) or links
                else:
                    links = await self.ask(self.address()) or links

    def address(self):
        """A question of the right form, which the policy may refuse."""
        name = self.random.choice(list(self.datasets))
        variables = self.datasets[name].variables
        some = self.random.sample(variables, self.random.randint(1, min(4, len(variables))))
        asked = []
        for variable in some:
            detail = self.random.choice(variable.details)
            codes = [e.code for e in variable.entries(detail) if not e.is_total]
            place = self.random.choice(("rows", "rows", "columns", "columns", "layers", "where"))
            few = self.random.sample(codes, min(len(codes), self.random.randint(1, 3)))
            if place != "where":
                asked.append((place, detail.name))
            if place == "where" or self.random.random() < 0.2:
                kind = place if place == "where" else "pick"
                asked += [(f"{kind}.{variable.name}", code) for code in few]
        asked.append(("chart", self.random.choice(CHARTS)))
        if self.random.random() < 0.3:
            asked.append(("show", self.random.choice(("row", "column", "total"))))
        if self.random.random() < 0.2:
            asked.append(("totals", "0"))
        if self.random.random() < 0.4:
            asked.append(("unit", self.random.choice(self.datasets[name].units)))
        if asked[0][0] in ("rows", "columns") and self.random.random() < 0.15:
            few = [e.code for e in some[0].entries(some[0].details[0])[1:]][:2]
            asked.append((f"group.{some[0].name}", "|".join([self.random.choice(ODD), *few])))
        return f"/d/{name}/table?{urlencode(asked)}"

    async def ask(self, address):
        """A question, which may be refused; a page that is answered gives links."""
        response = await self.get(address)
        return await self.look(address, response) if response.status_code == 200 else []

    async def follow(self, address):
        """A link of a page, which must lead somewhere."""
        response = await self.get(address)
        if response.status_code == 400 and self.is_offered(address):
            return []  # public sizes allow the table, and protected figures do not
        if response.status_code != 200:
            raise FaultError(f"a link leads to {response.status_code}: {address}")
        return await self.look(address, response)

    def is_offered(self, address):
        """Whether nothing that is known before forbids a table."""
        path, _, asked = address.partition("?")
        query = Query.parse([p for p in parse_qsl(asked) if p[0] not in ("edit", "lang")])
        return path.startswith("/d/") and self.datasets[path.split("/")[2]].is_offered(query)

    async def get(self, address):
        self.client.cookies.clear()  # the language of one page is not that of the next
        response = await self.client.get(address)
        kind = address.split("?")[0].rsplit("/", 1)[-1]
        self.seen[kind, response.status_code] += 1
        if response.status_code >= 500:
            raise FaultError(f"{response.status_code} at {address}")
        return response

    async def look(self, address, response):
        """Check a page of a table and one of its files, or a chart; links of pages."""
        kind, at = response.headers["content-type"], str(response.url)
        if kind.startswith("image/svg"):
            lxml.etree.fromstring(response.content)  # a drawing program is strict
        if not kind.startswith("text/html"):
            return []
        resolved = (urljoin(at, unescape(link)) for link in LINK.findall(response.text))
        links = [link.removeprefix(HERE) for link in resolved if link.startswith(f"{HERE}/")]
        if "/table?" not in at:
            return links if self.random.random() < 0.3 else []
        page = lxml.html.fromstring(response.text)
        figures = []
        for table in page.xpath("//div[@class='edges']//table[caption]"):
            columns = len(table.xpath("./colgroup/col"))
            for row in table.xpath("./tbody/tr[td[not(@colspan)]]"):
                cells = [td.text_content().strip() for td in row.xpath("./td")]
                heads = sum(int(th.get("colspan", 1)) for th in row.xpath("./th"))
                if len(cells) + heads > columns:
                    raise FaultError(f"a row has more cells than columns: {address}")
                figures += [cells]
        if len({len(row) for row in figures}) > 1:
            raise FaultError(f"rows differ in their number of cells: {address}")
        self.check_print(page, figures, address)
        files = [link for link in links if re.search(r"/table\.\w", link)]
        if files and self.random.random() < 0.5:
            decimal = "," if page.get("lang") == "nb" else "."
            shown = [number(cell, decimal) for row in figures for cell in row]
            await self.check_file(self.random.choice(files), shown)
        return [link for link in links if "/table." not in link]

    def check_print(self, page, figures, address):
        """The parts for paper have, side by side, every figure of the page."""
        parts = page.xpath("//div[@class='printed']/table")
        if not parts:
            return
        self.seen["printed in parts", 200] += 1
        rows = [[] for _ in figures]
        for part in parts:
            lines = part.xpath("./tbody/tr[td[not(@colspan)]]")
            for row, line in zip(rows, lines, strict=True):
                row += [td.text_content().strip() for td in line.xpath("./td")]
        if rows != figures:
            raise FaultError(f"what is printed differs from the page: {address}")

    async def check_program(self, address, plain):
        """The interfaces of PxWeb give the same figures for a plain crossing."""
        path, _, asked = address.partition("?")
        query = Query.parse(asked)
        name = path.split("/")[2]
        is_plain = not (query.layers or query.picked or query.where or query.groups)
        if not is_plain or query.view.show != "count" or not query.view.totals:
            return
        details = by_detail(self.datasets[name].variables)
        chosen = {
            details[d].name: [e.code for e in details[d].entries]
            for d in (*query.rows, *query.columns)
        }
        chosen["ContentsCode"] = [query.unit or self.datasets[name].units[0]]
        selection = [{"variableCode": v, "valueCodes": c} for v, c in chosen.items()]
        second = await self.post(f"/api/pxweb/v2/tables/{name}/data", {"selection": selection})
        parts = [
            {"code": v, "selection": {"filter": "item", "values": c}} for v, c in chosen.items()
        ]
        body = {"query": parts, "response": {"format": "json-stat"}}
        first = await self.post(f"/api/v1/en/tables/{name}", body)
        if second.status_code == 403 == first.status_code:
            return  # more cells than a call may have
        for found in (second.json(), first.json()["dataset"]):
            values = [None if v is None else round(float(v), 6) for v in found["value"]]
            if sorted(values, key=_order) != sorted(plain, key=_order):
                raise FaultError(f"an interface and the page's CSV differ: {address}")

    async def post(self, address, body):
        response = await self.client.post(address, json=body)
        self.seen[address.split("/")[2], response.status_code] += 1
        if response.status_code not in (200, 403):
            raise FaultError(f"{response.status_code} at {address}: {body}")
        return response

    async def check_file(self, address, figures):
        """A download, read by its own reader, has the figures of the page's CSV, and the page's."""
        ending = re.search(r"/table\.([\w.-]+)\?", address)[1]
        response, other = (
            await self.get(address),
            await self.get(re.sub(r"/table\.[\w.-]+\?", "/table.csv?", address)),
        )
        if {response.status_code, other.status_code} != {200}:
            raise FaultError(f"a file that is offered answers {response.status_code}: {address}")
        plain = csv_values(other.text)
        if self.random.random() < 0.2:
            await self.check_program(address.replace("&labels=labels", ""), plain)
        shown = Counter(v for v in figures if v is not None)
        is_mean = "unit=mean-" in address  # pages show two decimals of a quotient
        written = Counter(round(v, 2) if is_mean else v for v in plain if v is not None)
        # A page shows one of several layers and folds levels away; the file has all of them.
        is_part = "layers=" in address or "fold." in address
        is_same = shown <= written if is_part else shown == written
        if "show=" not in address and not is_same:
            raise FaultError(f"the page and its CSV differ: {address}")
        if not _same_figures(ending, response, plain):
            raise FaultError(f"{ending} and CSV differ: {address}")
        self.seen[f"read {ending}", 200] += 1


def _same_figures(ending, response, plain):
    """Whether a file has the figures of the CSV; of some formats nothing is known but zeros."""
    if ending in WHOLE:
        return sorted(WHOLE[ending](response), key=_order) == sorted(plain, key=_order)
    if ending not in SHOWN:
        return ending == "csv-metadata.json"
    found = SHOWN[ending](response)
    return Counter(filter(None, found)) == Counter(filter(None, plain))


def _order(value):
    return (value is None, value or 0)


def small_walk(seed, steps):
    """A walk over the small site with a sum and its mean, by a visitor whom nobody limits."""
    site, office = small_site(released={"measures": sums_of_once()}), Office()
    app = make_app(site, office)
    office.rate_limiter.rate = 0
    return Walk(app, site.datasets, seed).run(steps)


if __name__ == "__main__":
    seen = small_walk(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write("".join(f"{kind}: {n}\n" for kind, n in sorted(seen.items())))
