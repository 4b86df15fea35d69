"""A visitor's way through the table builder, in headless Chromium."""

import csv

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.browser
PLAIN = "/d/census/table?rows=region%5Bprovince%5D&columns=sex"


def test_from_the_catalogue_to_a_table_to_take_home(visitor):
    visitor.open("/")
    visitor.follow(visitor.link("Census of Tarvenia"))
    assert visitor.title == "Region (province) by sex"
    visitor.find("#search").send_keys("educ")
    shown = [li.text.split("\n")[0] for li in visitor.all("#offered li") if li.is_displayed()]
    assert [name.partition(" 1")[0] for name in shown] == ["Education"]
    visitor.follow(visitor.find("#add-education-columns"))
    visitor.follow(visitor.find("#v-sex-to-layers"))
    visitor.follow(visitor.find("#show-row"))
    assert {row[0] for row in visitor.figures()} == {"100.0"}
    visitor.follow(visitor.find("#show-count"))
    before = visitor.figures()
    Select(visitor.find("#layer-sex")).select_by_visible_text("Female")
    visitor.wait(lambda: "layer.sex=F" in visitor.query and visitor.is_settled())
    assert visitor.figures() != before
    assert visitor.find(".lead .tag").text == "Layer: Sex: Female"
    visitor.find("#download-csv").click()
    path = visitor.wait(lambda: next(visitor.downloads.glob("*.csv"), None))
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    women = {row["count"] for row in rows if row["sex"] == "F"}
    seen = {text.replace(",", "") for row in visitor.figures() for text in row}
    assert seen - {"–"} <= women | {"0"}


def test_a_refusal_keeps_every_choice_and_offers_a_way_on(visitor):
    visitor.open("/d/census/table?rows=region&rows=age&columns=education&columns=sex&chart=bars")
    assert visitor.title == "This table cannot be shown"
    assert "cells" in visitor.find(".refusal").text
    kept = [h.text for h in visitor.all(".card h3")]
    assert kept == ["Region", "Age", "Education", "Sex"]
    visitor.follow(visitor.find("#offer-1"))
    assert visitor.all("table")
    assert "chart=bars" in visitor.query


def test_the_keyboard_alone_is_enough(visitor):
    visitor.open(PLAIN)
    press(visitor, Keys.TAB)
    assert visitor.script("return document.activeElement.textContent") == "Skip to the content"
    press(visitor, Keys.ENTER)
    visitor.wait(lambda: visitor.focused() == "main")
    tab_to(visitor, "v-region-choose")
    press(visitor, Keys.ENTER)
    visitor.wait(lambda: visitor.focused() == "editor")
    tab_to(visitor, "box-1")
    press(visitor, Keys.SPACE)
    visitor.wait(lambda: "pick.region=" in visitor.query and visitor.is_settled())
    visitor.wait(lambda: visitor.focused() == "box-1")
    assert len(visitor.figures()) == 8  # the total and seven of eight provinces
    assert visitor.find("#said").get_attribute("textContent").endswith("Region (province) by sex")
    press(visitor, Keys.ESCAPE)
    visitor.wait(lambda: visitor.focused() == "v-region-choose")
    tab_to(visitor, "sort-F")
    press(visitor, Keys.ENTER)
    visitor.wait(lambda: "sort=-F" in visitor.query and visitor.is_settled())
    women = [int(row[1].replace(",", "")) for row in visitor.figures()]
    assert women[1:] == sorted(women[1:], reverse=True)
    assert visitor.focused() == "sort-F"
    assert visitor.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def press(visitor, key):
    ActionChains(visitor.driver).send_keys(key).perform()  # whatever has the focus by then


def tab_to(visitor, name):
    """Press the tab key until an element has the focus."""
    for _ in range(80):
        if visitor.focused() == name:
            return
        press(visitor, Keys.TAB)
    raise AssertionError(f"the keyboard does not reach {name}")


def test_charts_stand_beside_the_table(visitor):
    visitor.open("/d/census/table?rows=age&columns=sex")
    for kind in ("bars", "lines", "heat", "pyramid"):
        visitor.follow(visitor.find(f"#chart-{kind}"))
        chart = visitor.find("figure.chart svg")
        assert chart.is_displayed()
        assert visitor.find("table").is_displayed()
        assert visitor.find("#chart-description").get_attribute("textContent")
        spilled = visitor.script(SPILLED, chart)
        assert spilled == []
    visitor.follow(visitor.find("#chart-none"))
    assert visitor.all("figure.chart") == []


SPILLED = """
const frame = arguments[0].getBoundingClientRect();
return [...arguments[0].querySelectorAll("text")].filter((text) => {
  const box = text.getBoundingClientRect();
  return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
}).map((text) => text.textContent);
"""


def test_back_and_forward_go_through_the_tables(visitor):
    visitor.open(PLAIN)
    visitor.follow(visitor.find("#swap"))
    visitor.follow(visitor.find("#totals"))
    assert visitor.title == "Sex by region (province)"
    visitor.driver.back()
    visitor.wait(lambda: "totals" not in visitor.query and visitor.is_settled())
    visitor.wait(lambda: len(visitor.figures()) == 3)
    visitor.driver.back()
    visitor.wait(lambda: visitor.title == "Region (province) by sex")
    visitor.driver.forward()
    visitor.wait(lambda: visitor.title == "Sex by region (province)")


def test_levels_fold_and_unfold(visitor):
    visitor.open("/d/census/table?rows=age&columns=sex")
    everything = len(visitor.figures())
    visitor.follow(visitor.find("#collapse"))
    assert len(visitor.figures()) == 4
    visitor.follow(visitor.find("tbody .fold"))
    assert 4 < len(visitor.figures()) < everything
    visitor.follow(visitor.find("#expand"))
    assert len(visitor.figures()) == everything


def test_a_long_list_is_searched_and_stays_open(visitor):
    visitor.open("/d/census/table?rows=region&edit=pick.region")
    search = visitor.find("#search-boxes")
    search.send_keys("hålb")
    shown = [li for li in visitor.all("#boxes li") if li.is_displayed()]
    assert [li.text.split("\n")[0] for li in shown] == ["Hålbergen"]
    search.send_keys(Keys.TAB)
    visitor.find("[data-tick=none]").click()
    visitor.wait(lambda: "pick.region=" in visitor.query and visitor.is_settled())
    assert visitor.find("#search-boxes").get_attribute("value") == "hålb"
    assert "pick.region=H&" not in visitor.query + "&"
    visitor.find("#search-boxes").send_keys("qqq")
    assert visitor.find("#boxes .none").text == "Nothing fits your search."


def test_own_groups_and_populations(visitor):
    visitor.open("/d/census/table?rows=age%5Bbroad_age%5D&columns=sex")
    counted = visitor.figures()
    visitor.follow(visitor.find("#v-age-group"))
    visitor.find("#group-name").send_keys("Under 65")
    for box in visitor.all("#boxes input")[:2]:
        box.click()
    visitor.follow(visitor.find(".editor form button:not([type])"))
    labels = [th.text for th in visitor.all("tbody th")]
    assert labels == ["Total", "Under 65"]
    number = lambda text: int(text.replace(",", ""))  # noqa: E731
    grouped = visitor.figures()[1]
    assert list(map(number, grouped)) == [
        number(a) + number(b) for a, b in zip(counted[1], counted[2], strict=True)
    ]
    visitor.find("#filters summary").click()
    visitor.follow(visitor.find("#f-citizenship-add"))
    visitor.all("#boxes input")[0].click()
    visitor.wait(lambda: "where.citizenship=" in visitor.query and visitor.is_settled())
    assert number(visitor.figures()[0][0]) < number(counted[0][0])
    assert "Population: Citizenship" in visitor.find(".lead").text


def test_the_language_is_switched_and_remembered(visitor):
    visitor.open(PLAIN)
    visitor.follow(visitor.link("Norsk"))
    assert visitor.title == "Region (province) etter sex"
    assert visitor.find("#show-count").text == "Tall"
    assert "\u00a0" in visitor.figures()[0][0]
    visitor.open("/about")
    assert visitor.title == "Om tallene"


def test_without_scripts_the_basics_work(visitor):
    visitor.with_scripts(False)
    visitor.open(PLAIN)
    visitor.find("#v-region-choose").click()
    visitor.wait(lambda: visitor.all("#boxes input"))
    visitor.find("#box-0").click()
    visitor.find(".editor form button:not([type])").click()
    visitor.wait(lambda: "pick.region=" in visitor.query and not visitor.all("#boxes"))
    assert len(visitor.all("tbody tr")) == 8
    visitor.find("#v-sex-to-layers").click()
    visitor.wait(lambda: visitor.all("#layer-sex"))
    Select(visitor.find("#layer-sex")).select_by_visible_text("Female")
    visitor.find("form.layer button").click()
    visitor.wait(lambda: "layer.sex=F" in visitor.query)
    assert "pick.region=" in visitor.query


def test_the_policy_is_enforced_and_a_breach_would_be_seen(visitor):
    visitor.open("/")
    visitor.script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        "document.body.append(s);"
    )
    assert visitor.script("return window.ran") is None
    assert any("Content Security Policy" in said for said in visitor.complaints())
