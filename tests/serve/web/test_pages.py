"""What visitors see: every state is an address, and nothing is lost on the way."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urljoin

import lxml.etree
import lxml.html
import pytest

from discreet.serve import DatasetInfo, Policy, Site, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import ABOUT, once, small_site

TABLE = "/d/once/table?rows=region&columns=sex&chart=bars"
PAGES = [
    "/",
    "/about",
    "/d/once",
    "/d/live",
    "/d/once/about",
    TABLE,
    "/d/once/table?rows=region&columns=age&layers=sex&show=row&chart=heat",
    "/d/once/table?rows=age&columns=sex&totals=0&sort=-F&chart=pyramid",
    "/d/once/table?rows=region&edit=pick.region",
    "/d/once/table?rows=region&where.sex=F&edit=where.sex",
    "/d/live/table?rows=age&edit=group.age",
    "/d/once/table?rows=nothing",
    "/nowhere",
]


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the texts of some."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def all(self, tag, **wanted):
        return [
            a for t, a in self.found if t == tag and all(a.get(k) == v for k, v in wanted.items())
        ]


def elements(client, path, **options):
    return Elements(client.get(path, **options).text)


@pytest.mark.parametrize("path", PAGES)
def test_pages_obey_the_strict_policy_and_stay_on_the_site(client, path):
    response = client.get(path)
    page = Elements(response.text)
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for tag, attributes in page.found:
        assert tag not in ("style", "iframe", "object", "base")
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "action"):
            assert not attributes.get(name, "/").startswith(("http", "//", "javascript"))
    assert all("src" in script for script in page.all("script"))


@pytest.mark.parametrize("path", PAGES)
def test_names_on_a_page_are_unique_and_labels_find_their_fields(client, path):
    page = elements(client, path)
    ids = [a["id"] for _, a in page.found if "id" in a]
    assert len(ids) == len(set(ids))
    for label in page.all("label"):
        assert label.get("for", ids[0]) in ids


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in PAGES if p.startswith("/d/")])
def test_every_link_of_a_page_leads_somewhere_without_a_detour(client, path):
    links = {urljoin(path, unescape(a["href"])) for a in elements(client, path).all("a")}
    own = [link for link in links if link.startswith("/d/") and "#" not in link]
    assert own
    for link in own:
        assert client.get(link).status_code in (200, 400), link


def test_the_first_page_is_small(client):
    first = client.get("/d/once").text
    page = Elements(first)
    parts = [a["href"] for a in page.all("link")] + [a["src"] for a in page.all("script")]
    parts += [a["src"] for a in page.all("img")]
    total = len(first) + sum(len(client.get(part).content) for part in parts)
    assert total < 150_000


def test_the_catalogue_tells_what_there_is(client):
    text = client.get("/").text
    for said in ("Small country", "The census of a small country", "CC BY 4.0", "2026-01-01"):
        assert said in text
    assert "Region, Age, Sex" in text


def test_an_address_has_one_form(client):
    response = client.get("/d/once/table?columns=sex&chart=none&rows=region&unit=")
    assert response.status_code == 303
    assert response.headers["location"] == "table?rows=region&columns=sex"
    assert client.get("/d/once/table?rows=region&columns=sex").status_code == 200


def test_a_choice_of_everything_is_no_choice(client):
    picks = "&".join(f"pick.sex={code}" for code in "FM")
    response = client.get(f"/d/once/table?rows=sex&{picks}")
    assert response.headers["location"] == "table?rows=sex"


def test_forms_send_everything_that_was_chosen_before(client):
    path = "/d/once/table?rows=region&columns=age&pick.region=N&where.sex=F&show=row&chart=bars"
    page = elements(client, f"{path}&edit=pick.region")
    hidden = {(a["name"], a["value"]) for a in page.all("input", type="hidden")}
    assert {("rows", "region"), ("columns", "age"), ("where.sex", "F")} <= hidden
    assert {("show", "row"), ("chart", "bars")} <= hidden
    boxes = page.all("input", type="checkbox", name="pick.region")
    assert [box["value"] for box in boxes if "checked" in box] == ["N"]


def test_a_form_makes_a_group(client):
    form = "rows=age&new.of=age&new.label=Not+old&new.code=0-14&new.code=15-64&edit=group.age"
    response = client.get(f"/d/live/table?{form}")
    assert response.status_code == 303
    followed = client.get(f"/d/live/{response.headers['location']}")
    assert followed.status_code == 200
    assert "Not old" in followed.text
    assert "group.age=Not+old%7C0-14%7C15-64" in response.headers["location"].replace("|", "%7C")


def test_fixed_groups_are_offered_where_visitors_make_none():
    policy = Policy(groups="fixed", fixed_groups={"age": {"Not old": ("0-14", "15-64")}})
    client = Client(make_app(small_site(policy)))
    page = client.get("/d/once/table?rows=age&edit=group.age").text
    assert 'id="fixed-0"' in page
    assert 'name="new.label"' not in page
    assert "edit=group.region" not in client.get("/d/once/table?rows=region").text


def test_a_refusal_keeps_the_choices_and_offers_what_is_allowed():
    client = Client(make_app(small_site(Policy(max_variables=2))))
    response = client.get("/d/once/table?rows=region&rows=age&columns=sex&chart=bars")
    page = Elements(response.text)
    assert response.status_code == 400
    assert "The table asks for 3 variables." in response.text
    for name in ("region", "age", "sex"):
        assert page.all("a", id=f"v-{name}-remove")
    offers = [a["href"] for a in page.all("a") if a.get("id", "").startswith("offer-")]
    assert offers
    for offer in offers:
        assert client.get(unescape(offer)).status_code == 200
        assert "chart=bars" in offer


def test_the_language_is_asked_for_remembered_or_preferred(client):
    asked = client.get("/?lang=nb")
    assert '<html lang="nb">' in asked.text
    assert "lang=nb" in asked.headers["set-cookie"]
    assert "samesite=lax" in asked.headers["set-cookie"].lower()
    remembered = client.get("/", headers={"cookie": "lang=nb"})
    assert '<html lang="nb">' in remembered.text
    preferred = client.get("/", headers={"accept-language": "nn-NO,en;q=0.5"})
    assert '<html lang="nb">' in preferred.text
    assert '<html lang="en">' in client.get("/?lang=xx").text


def test_switching_the_language_keeps_the_table(client):
    page = elements(client, TABLE)
    (link,) = page.all("a", hreflang="nb")
    text = client.get(urljoin(TABLE, unescape(link["href"]))).text
    assert "Region (alle nivåer) etter sex" in text
    assert "Hva som er gjort med tallene" in text


@pytest.mark.parametrize("dataset", ["once", "live"])
def test_plain_notes_are_translated(client, dataset):
    text = client.get(f"/d/{dataset}?lang=nb").text
    notes = text[
        text.index('<dl class="notes">') : text.index("</dl>", text.index('<dl class="notes">'))
    ]
    assert 'lang="en"' not in notes


def test_notes_say_whether_figures_add_up(client):
    assert "Figures add up to their totals." in client.get("/d/once").text
    assert "Figures may not add up to totals" in client.get("/d/live").text


def test_units_are_those_of_the_figures(client):
    counts = client.get("/d/once/table?rows=age&columns=sex").text
    shares = client.get("/d/once/table?rows=age&columns=sex&show=row").text
    assert "Figures are numbers of people" in counts
    assert "Figures are numbers of people" not in shares
    assert "Figures are percentages of the row total." in shares


def test_sums_of_protected_figures_do_not_claim_the_precision_of_single_ones(client):
    single = client.get("/d/live/table?rows=region").text
    summed = client.get("/d/live/table?rows=region&where.sex=F").text
    assert "No figure was changed by more than 5." in single
    plain = summed[summed.index('<dl class="notes">') : summed.index("For methodologists")]
    assert "No figure was changed by more than" not in plain
    assert "add up several protected figures" in plain


def test_a_table_is_cited_with_its_edition_and_address(client):
    text = re.sub(r"\s+", " ", unescape(client.get(TABLE).text))
    cited = text[text.index('id="citation">') :]
    assert "The census of a small country: Region (every level) by sex." in cited
    assert "Small country, edition 2026." in cited
    assert "http://here/d/once/table?rows=region&columns=sex&chart=bars" in cited


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("rows=age", "Age"),
        ("columns=sex&columns=age", "Sex and age"),
        ("rows=age&rows=sex&columns=region", "Age and sex by region (every level)"),
        ("rows=age&layers=sex", "Age, in layers by sex"),
        ("layers=sex", "Total, in layers by sex"),
    ],
)
def test_titles_name_rows_by_columns(client, address, title):
    assert f">{title}</h1>" in client.get(f"/d/once/table?{address}").text


def test_a_chart_can_be_saved(client):
    response = client.get("/d/once/chart.svg?rows=age&columns=sex&chart=pyramid")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.text.startswith("<svg")
    part = client.get("/d/once/chart.svg?rows=age&layers=sex&where.region=N&chart=bars")
    assert "Region: North, Sex: Total</title>" in part.text
    assert client.get("/d/once/chart.svg?rows=age").status_code == 404


def test_texts_of_the_office_are_escaped():
    evil = "<script>alert('x')</script>"
    about = DatasetInfo(title=evil, description=evil, source=evil, footnotes=(evil,))
    config = SiteConfig(title=evil, contact=evil, description=evil)
    client = Client(make_app(Site(config, {"once": once(about=about)})))
    for path in ("/", "/d/once", "/d/once/about", f"/d/once/table?rows={evil}", f"/{evil}"):
        assert evil not in client.get(path).text


def test_visitors_texts_are_escaped(client):
    evil = '"><img src=x onerror=alert(1)>'
    for path in (
        f"/d/once/table?rows={evil}",
        f"/d/live/table?rows=age&group.age={evil}|0-14|15-64",
        f"/d/once/table?rows=age&sort={evil}",
        f"/d/once/table?rows=age&edit={evil}",
        f"/?lang={evil}",
    ):
        response = client.get(path)
        assert not [a for a in Elements(response.text).all("img") if a.get("onerror")]


def test_pages_work_behind_a_path(site):
    client = Client(make_app(site), root_path="/tables")
    page = elements(client, "/tables/d/once")
    for link in page.all("a"):
        assert link["href"].startswith(("/tables/", "#", "?"))


def test_a_closed_data_set_says_so():
    dataset = once()
    client = Client(make_app(Site(SiteConfig(), {"once": dataset})))
    dataset.switch.is_closed = True
    assert "This data set is closed at the moment." in client.get("/").text
    assert client.get("/d/once").status_code == 403


def test_limits_that_the_office_does_not_tell_are_not_told():
    told = Client(make_app(small_site(Policy(max_cells=777))))
    kept = Client(make_app(small_site(replace(Policy(max_cells=777), public_parameters=()))))
    for path in ("/d/once", "/d/once/about"):
        assert "777" in told.get(path).text
        assert "777" not in kept.get(path).text


# The catalogue, series, and what is taken away


def with_topics():
    about = replace(ABOUT, topic="Population", description="Everybody who lives here.")
    return Client(make_app(small_site(released={"about": about})))


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("", ["once", "live"]),
        ("query=EVERYBODY+lives", ["once"]),
        ("query=fly", ["live"]),
        ("query=sex", ["once", "live"]),
        ("topic=Population", ["once"]),
        ("topic=Population&query=fly", []),
        ("query=%22%3E%3Cscript%3E", []),
    ],
)
def test_the_catalogue_is_searched(asked, names):
    page = with_topics().get(f"/?{asked}")
    assert page.status_code == 200
    assert re.findall(r'<h2><a href="/d/(\w+)"', page.text) == names
    assert ("No data set matches." in page.text) == (not names)
    assert "<script>" not in page.text


def test_the_catalogue_tells_topics_and_periods():
    client = Client(make_app(small_site(released={"time": "age"})))
    assert "0-14–65+" in client.get("/").text
    assert "<dt>Topic</dt><dd>Population</dd>" in with_topics().get("/").text


def test_a_series_over_time_is_drawn_as_lines():
    page = Client(make_app(small_site(released={"time": "age"}))).get("/d/once").text
    assert re.search(r'id="chart-lines"[^>]*aria-current|aria-current[^>]*id="chart-lines"', page)
    assert "Age by sex" in page


def test_a_csv_file_with_labels_is_offered(client):
    page = client.get("/d/once/table?rows=region&columns=sex").text
    link = unescape(re.search(r'id="download-labelled" href="([^"]+)"', page)[1])
    plain, labelled = client.get(link.replace("&labels=labels", "")), client.get(link)
    assert labelled.text.splitlines()[1].startswith('"Whole country","Total"')
    figures = [
        [row.rsplit(",", 1)[1] for row in f.text.splitlines()[1:]] for f in (plain, labelled)
    ]
    assert figures[0] == figures[1]


def test_a_wide_table_is_printed_in_parts(client):
    page = lxml.html.fromstring(
        client.get("/d/once/table?rows=sex&columns=region&columns=age").text
    )
    shown, *parts = (
        [[td.text_content() for td in row.xpath("./td")] for row in table.xpath("./tbody/tr")]
        for table in page.xpath("//table[caption]")
    )
    assert len(parts) > 1
    assert [sum(rows, []) for rows in zip(*parts, strict=True)] == shown
    heads = [t.xpath("count(./thead/tr[last()]/th)") for t in page.xpath("//table[caption]")]
    assert heads[0] == sum(heads[1:])


def test_a_narrow_screen_is_told_of_further_columns(client):
    page = client.get("/d/once/table?rows=sex&columns=region").text
    assert "<noscript>" in page
    assert "The table has 12 columns." in page
    assert 'data-many="{} more columns →"' in page


def test_a_groups_name_turns_no_figures_around(client):
    asked = "rows=age&columns=sex&chart=bars&group.age=%E2%80%AEYoung%E2%81%A6|0-14|15-64"
    led = client.get(f"/d/once/table?{asked}", follow_redirects=True)
    assert led.status_code == 200
    assert not {"\u202e", "\u2066"} & {*led.text}
    assert "Young: 0-14, 15-64" in led.text


def test_a_groups_name_holds_no_sign_that_files_cannot_hold(client):
    for sign, shown in ("%01", "a b"), ("%EF%BF%BF", "a b"), ("%0A", "a  b"), ("%C2%85", "a  b"):
        group = f"group.age=a{sign} b|0-14|15-64"
        drawn = client.get(f"/d/once/chart.svg?rows=age&columns=sex&chart=bars&{group}")
        texts = lxml.etree.fromstring(drawn.content).itertext()
        assert shown in {*texts}


def test_two_groups_of_one_name_are_refused(client):
    asked = "rows=age&columns=sex&group.age=Young|0-14&group.age=+Young|15-64"
    assert client.get(f"/d/once/table?{asked}").status_code == 400


def test_a_name_that_is_repeated_is_listed_once(client):
    """Six hundred names in an address of 7 kB were a page of 25 MB."""
    page = client.get("/d/once/table?" + "&".join(["rows=region"] * 300))
    assert page.status_code == 400
    assert "chosen more than once" in page.text
    assert len(page.content) < 250_000
