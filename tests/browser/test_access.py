"""Every page can be used by everybody: axe-core finds nothing, and nothing spills over."""

import pytest

pytestmark = pytest.mark.browser
PAGES = {
    "catalogue": "/",
    "about": "/about",
    "data set": "/d/census/about",
    "first table": "/d/census",
    "levels": "/d/census/table?rows=region&columns=sex&columns=citizenship&sort=-F%7CHOME",
    "layers": "/d/census/table?rows=age&columns=sex&layers=marital&show=row&chart=heat",
    "picking": "/d/census/table?rows=age&columns=sex&chart=pyramid&edit=pick.age",
    "grouping": "/d/census/table?rows=age&chart=lines&edit=group.age",
    "population": "/d/survey/table?rows=sex&where.age=Y_GE65&edit=where.age",
    "refusal": "/d/census/table?rows=region&rows=age&columns=education&columns=sex",
    "nowhere": "/nowhere",
    "for programs": "/api/",
}
ON_PHONES = [PAGES[name] for name in ("catalogue", "first table", "picking")]
"""Pages that axe-core looks at in both widths."""


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_no_page_has_a_barrier_and_none_spills_over_on_a_phone(visitor, path):
    visitor.resize(320)
    visitor.open(path)
    assert visitor.script("return document.documentElement.scrollWidth") <= 320
    visitor.resize(390)
    if path in ON_PHONES:
        assert visitor.barriers() == []
    visitor.resize(1280)
    assert visitor.barriers() == []


def test_a_table_is_read_on_a_phone_with_its_first_column(visitor):
    visitor.resize(390)
    visitor.open("/d/census/table?rows=region%5Bprovince%5D&columns=marital")
    assert not visitor.find(".card").is_displayed()
    visitor.find("#build > summary").click()
    assert visitor.find(".card").is_displayed()
    visitor.find("#build > summary").click()
    visitor.script("document.querySelector('.sheet').scrollLeft = 200")
    first = visitor.find("tbody th").rect
    sheet = visitor.find(".sheet").rect
    assert abs(first["x"] - sheet["x"]) < 3
    assert visitor.script("return document.querySelector('.sheet').scrollLeft") > 100


def test_paper_gets_the_table_and_its_notes_alone(visitor):
    visitor.open("/d/census/table?rows=region&columns=sex&chart=bars")
    visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not visitor.find(".panel").is_displayed()
        assert not visitor.find(".toolbar").is_displayed()
        assert visitor.find("figure.chart").is_displayed()
        assert visitor.find("#notes").is_displayed()
        sheet = visitor.find(".sheet")
        assert (
            visitor.script("return arguments[0].scrollHeight - arguments[0].clientHeight", sheet)
            < 2
        )
    finally:
        visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_phone_says_how_many_columns_lie_beyond_its_edge(visitor):
    visitor.resize(390)
    visitor.open("/d/census/table?rows=region%5Bprovince%5D&columns=marital")
    more = visitor.find(".more button")
    columns = len(visitor.all(".sheet thead tr:last-child th:not(.corner)"))
    beyond = int(more.text.split()[0])
    assert 0 < beyond < columns
    more.click()
    visitor.wait(lambda: not more.is_displayed() or int(more.text.split()[0]) < beyond)
    visitor.script("document.querySelector('.sheet').scrollLeft = 10_000")
    visitor.wait(lambda: not more.is_displayed())
    visitor.resize(1280)
    visitor.open("/d/census/table?rows=region%5Bprovince%5D&columns=sex")
    assert not visitor.find(".more").is_displayed()


WIDEST = 1_032  # pixels between the margins of A4 turned, 273 mm


@pytest.mark.parametrize(
    "query",
    [
        "rows=region&columns=age",
        "rows=region[province]&columns=age[age]&columns=sex",
        "rows=age&columns=education&columns=sex",
        "rows=citizenship&rows=marital&columns=region",
    ],
)
def test_paper_has_room_for_every_column(visitor, query):
    visitor.open(f"/d/census/table?{query}")
    labels = "return [...document.querySelectorAll('{} thead tr:last-child th:not(.corner)')]"
    labels += ".map((th) => th.querySelector('.label').textContent)"
    shown = visitor.script(labels.format(".sheet"))
    visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not visitor.find(".sheet").is_displayed()
        assert visitor.script(labels.format(".printed")) == shown
        on_paper = "const all = document.querySelector('.printed'); all.style.width = '{}px';"
        on_paper += "return Math.max(...[...all.children].map((t) => t.offsetWidth))"
        assert visitor.script(on_paper.format(WIDEST)) <= WIDEST
        breaks = "return [...document.querySelector('.printed').children]"
        first, *others = visitor.script(f"{breaks}.map((t) => getComputedStyle(t).breakInside)")
        assert first == "auto"  # else a long first part leaves the first page empty
        assert {*others} <= {"avoid"}
    finally:
        visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_dark_pages_have_no_barrier(visitor):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        for name in ("catalogue", "first table", "picking", "refusal"):
            visitor.open(PAGES[name])
            ground = visitor.script("return getComputedStyle(document.body).backgroundColor")
            assert ground == "rgb(16, 22, 27)"
            assert visitor.barriers() == []
    finally:
        visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_office_has_no_barriers_either(visitor, token):
    visitor.open("/sign-in")
    assert visitor.barriers() == []
    visitor.find("#token").send_keys(token)
    visitor.follow(visitor.find("main form button"))
    visitor.open("/")
    visitor.follow(visitor.link("Office"))
    assert visitor.title == "Office"
    assert visitor.barriers() == []
    visitor.resize(320)
    assert visitor.script("return document.documentElement.scrollWidth") <= 320
