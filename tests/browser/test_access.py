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
