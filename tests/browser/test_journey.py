"""A visitor's way through the table builder, in headless Chromium."""

import csv
import json
import shutil
import time
import urllib.request

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.serve.process import started

pytestmark = pytest.mark.browser
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1000",
)
READY = "return document.readyState === 'complete'"
INSTALL = "The browser tests need Chromium: sudo apt-get install chromium chromium-driver"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    with started("demo", "--persons", 5_000, "--folder", folder, "--port", 0) as (_, url):
        yield url


@pytest.fixture
def downloads(tmp_path):
    return tmp_path


@pytest.fixture
def browser(downloads, tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail(INSTALL)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield found
    finally:
        found.quit()


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def choose(browser, label, text):
    name = browser.find_element(By.XPATH, f"//label[normalize-space()='{label}']")
    select = browser.find_element(By.ID, name.get_attribute("for"))
    Select(select).select_by_visible_text(text)


def follow(browser, element):
    """Click, and wait for the next page to be there."""
    before = browser.current_url
    element.click()
    # while pages change, the driver may have none to speak of
    WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException]).until(
        lambda b: b.current_url != before and b.execute_script(READY)
    )


def show_table(browser):
    follow(browser, browser.find_element(By.CSS_SELECTOR, "form.builder button"))


def figures(browser):
    script = "return [...document.querySelectorAll('tbody td')].map((td) => td.textContent)"
    return browser.execute_script(script)


def downloaded(folder):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = list(folder.glob("*.csv"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise TimeoutError("the CSV file did not arrive")


def test_a_visitor_puts_a_table_together_and_takes_it_home(browser, address, downloads):
    browser.get(address)
    choose(browser, "Rows", "Region, province (8)")
    choose(browser, "Rows, then by", "Sex (2)")
    choose(browser, "Columns", "Age, broad age (3)")
    assert browser.find_element(By.CLASS_NAME, "hint").text.startswith("108 cells")
    show_table(browser)

    assert browser.find_element(By.TAG_NAME, "h1").text == (
        "Region (province) and sex by age (broad age)"
    )
    statement = browser.find_element(By.ID, "statement").text
    plain, full = statement.split("For methodologists")
    assert "Each figure was changed by a small random amount." in plain
    assert "Values were changed by the cell key method" in full
    assert "What is not protected" in full
    assert "protect:cell-key" in statement

    twin = browser.find_element(By.LINK_TEXT, "JSON").get_attribute("href")
    with urllib.request.urlopen(twin, timeout=30) as response:
        table = json.load(response)
    shown = [int(text.replace(",", "")) for text in figures(browser)]
    assert sorted(shown) == sorted(count for *_, count in table["cells"])

    browser.find_element(By.LINK_TEXT, "Download CSV").click()
    with downloaded(downloads).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == table["columns"]
    assert [[*codes, int(count)] for *codes, count in rows] == table["cells"]
    assert complaints(browser) == []


def test_a_table_that_is_too_large_is_refused_with_advice(browser, address):
    browser.get(address)
    choose(browser, "Rows", "Region, municipality (401)")
    choose(browser, "Columns", "Occupation, every level (51)")
    hint = browser.find_element(By.CLASS_NAME, "hint")
    assert "at most 10,000 are allowed" in hint.text
    show_table(browser)
    said = browser.find_element(By.CLASS_NAME, "refusal").text
    assert "20,904 cells" in said
    assert "At most 10,000 cells" in said
    follow(browser, browser.find_element(By.LINK_TEXT, "Put another table together"))
    assert browser.current_url == address


def test_a_variable_moves_to_where_it_was_chosen_last(browser, address):
    browser.get(address)
    choose(browser, "Columns", "Age, finest detail (20)")
    choose(browser, "Rows", "Age, broad age (3)")
    chosen = [s.get_attribute("value") for s in browser.find_elements(By.TAG_NAME, "select")]
    assert chosen == ["age[broad_age]", "", ""]


def test_the_keyboard_is_enough(browser, address):
    browser.get(f"{address}table?rows=sex&columns=age")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.text == "Skip to the content"
    assert skip.location["y"] >= 0
    skip.send_keys(Keys.ENTER)
    WebDriverWait(browser, 5).until(lambda b: b.current_url.endswith("#main"))
    assert browser.switch_to.active_element.tag_name == "main"
    reached = {}
    for _ in range(9):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        active = browser.switch_to.active_element
        name = active.get_attribute("class") or active.tag_name
        reached[name] = active.value_of_css_property("outline-style")
    assert {"button", "button quiet", "sheet", "summary"} <= reached.keys()
    assert set(reached.values()) == {"solid"}


@pytest.mark.parametrize("path", ["", "table?rows=region&columns=age", "table?rows=nothing"])
def test_nothing_spills_over_on_a_phone(browser, address, path):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
    )
    browser.get(address + path)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= 360


def test_the_policy_is_enforced_and_a_breach_would_be_seen(browser, address):
    browser.get(address)
    assert complaints(browser) == []
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        "document.body.append(s);"
    )
    assert browser.execute_script("return window.ran") is None
    assert any("Content Security Policy" in said for said in complaints(browser))
