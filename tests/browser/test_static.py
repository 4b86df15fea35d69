"""A site of files in browsers: every page can be used, and what is damaged is named, never zero."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from discreet.serve import InnerSource, Site, SiteConfig, write_site
from tests.browser.conftest import Visitor
from tests.browser.file_servers import object_store, plain_server
from tests.serve.sites import inner_table, once
from tests.serve.static.sites import odd_site

pytestmark = pytest.mark.browser
TABLE = "/d/once/table/index.html?rows=region&columns=sex"
PAGES = {
    "catalogue": "/index.html",
    "about": "/about/index.html",
    "data set": "/d/once/about/index.html",
    "first table": "/d/once/index.html",
    "levels": f"{TABLE}&sort=-F&chart=bars",
    "layers": "/d/once/table/index.html?rows=age&columns=sex&layers=region&show=row&chart=heat",
    "picking": "/d/once/table/index.html?rows=age&columns=sex&chart=pyramid&edit=pick.age",
    "grouping": "/d/once/table/index.html?rows=region&chart=lines&edit=group.region",
    "population": "/d/once/table/index.html?rows=sex&where.age=65%2B&edit=where.age",
    "refusal": "/d/once/table/index.html?rows=region&rows=region",
    "Norwegian": f"{TABLE}&lang=nb",
    "no such table": "/d/once/table/index.html?rows=nobody",
}


def site_of(edition="2026", more=0):
    table = inner_table()
    changed = replace(table, edition=edition, values=table.values + more)
    return Site(SiteConfig("Small site"), {"once": replace(once(), source=InnerSource(changed))})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_site(site_of(), folder)
    return folder


@pytest.fixture(scope="module")
def plain(built):
    with plain_server(built) as address:
        yield address


def at(driver, address, folder):
    """A visitor who was never here before."""
    driver.delete_all_cookies()
    driver.execute_cdp_cmd(
        "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    found = Visitor(driver, address, folder)
    found.with_scripts(True)
    found.resize(1280)
    found.asked_hosts()
    found.complaints()
    return found


@pytest.fixture
def reader(driver, plain, tmp_path):
    """A visitor of the site of files; it gives the browser nothing to complain of."""
    found = at(driver, plain, tmp_path)
    yield found
    assert found.complaints() == []
    assert found.asked_hosts() <= {plain.removeprefix("http://")}


def read(visitor, path):
    """Open a page, and wait until it is drawn."""
    visitor.open(path)
    visitor.wait(lambda: visitor.all("main, [role=alert]") and visitor.is_settled())


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_no_page_has_a_barrier_and_none_spills_over_on_a_phone(reader, path):
    read(reader, path)
    assert reader.all("main")
    reader.resize(390)
    assert reader.script("return document.documentElement.scrollWidth") <= 390
    reader.resize(1280)
    assert reader.barriers() == []


ODD_PAGES = (
    *("/index.html", "/d/odd/about/index.html", "/d/odd/index.html?lang=nb"),
    "/d/odd/table/index.html?rows=place&columns=constructor&chart=bars&edit=pick.place",
    "/d/signed/table/index.html?rows=place&columns=__proto__&chart=heat",
    "/d/large/table/index.html?rows=place&group.place=%3Cimg+src%3Dx+onerror%3Dhurt%28%29%3E%7CA%7CB",
    "/d/odd/table/index.html?rows=%3Cscript%3Ewindow.hurt+%3D+1%3C%2Fscript%3E",
)
RUNS_OVER = """return [...document.querySelectorAll("main th, main .boxes label")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"""


def test_labels_are_never_scripts_and_never_run_over_figures(driver, tmp_path):
    write_site(odd_site(), tmp_path / "odd")
    with plain_server(tmp_path / "odd") as address:
        visitor = at(driver, address, tmp_path)
        for path in ODD_PAGES:
            read(visitor, path)
            assert visitor.script("return window.hurt ?? null") is None
            assert visitor.script(RUNS_OVER) == []
            visitor.resize(390)
            assert visitor.script("return document.documentElement.scrollWidth") <= 390
            visitor.resize(1280)
        assert visitor.complaints() == []


FOREIGN = """const [done] = arguments, script = document.createElement("script");
script.textContent = "window.hurt = true";
document.head.append(script);
fetch("http://127.0.0.2:9/").catch(() => done(window.hurt ?? false));"""


def test_a_page_runs_no_script_and_asks_no_host_but_its_own(reader):
    read(reader, TABLE)
    assert not reader.driver.execute_async_script(FOREIGN)
    refused = [said for said in reader.complaints() if "Content Security Policy" in said]
    for rule in ("script-src", "connect-src"):
        assert any(rule in said for said in refused), rule
    reader.asked_hosts()


def test_a_browser_that_lets_sites_keep_nothing_shows_tables(reader):
    kept = 'Object.defineProperty(window, "localStorage", { get() { throw new Error("kept"); } });'
    asked = {"source": kept}
    made = reader.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", asked)
    try:
        read(reader, TABLE)
        assert reader.figures()
    finally:
        reader.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)


def test_a_page_without_scripts_says_what_it_needs(reader):
    reader.with_scripts(False)
    try:
        reader.open(TABLE)
        assert "needs JavaScript" in reader.find("main p").text
        assert reader.title == "Small site"
    finally:
        reader.with_scripts(True)


def test_dark_pages_have_no_barrier(reader):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        for name in ("catalogue", "levels"):
            read(reader, PAGES[name])
            ground = reader.script("return getComputedStyle(document.body).backgroundColor")
            assert ground == "rgb(16, 22, 27)"
            assert reader.barriers() == []
    finally:
        reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_paper_gets_the_table_and_its_notes_alone(reader):
    read(reader, PAGES["levels"])
    reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not reader.find(".panel").is_displayed()
        assert reader.find("figure.chart").is_displayed()
        assert reader.find("#notes").is_displayed()
    finally:
        reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def table_of(dataset, **query):
    """What the library answers."""
    from discreet.serve import Query

    answer = dataset.answer(Query.parse(list(query.items())))
    return [[f"{v:,}" for v in line] for line in answer.cube.values.tolist()]


def test_figures_are_the_library_s_and_links_lead_on(reader):
    for address in ("/d/once/table?rows=region&columns=sex", TABLE):  # of a server, and of files
        read(reader, address)
        expected = table_of(site_of().datasets["once"], rows="region", columns="sex")
        assert reader.figures() == expected
    link = reader.find(".panel a[href*='columns=age'], .panel a[href*='age']")
    before = reader.figures()
    reader.follow(link)
    reader.wait(lambda: reader.figures() != before)
    reader.driver.back()
    reader.wait(lambda: reader.figures() == before)


COUNTED = """window.messages = 0; const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (...all) { window.messages++; post.apply(this, all); };"""


def test_digests_and_sums_are_made_in_a_thread_beside_the_page(reader):
    read(reader, TABLE)
    reader.wait(lambda: reader.script("return window.answer_page.is_beside()"))
    reader.script(COUNTED)
    reader.follow(reader.find(".panel a[href*='columns=age'], .panel a[href*='age']"))
    assert reader.script("return window.messages") >= 2  # a cell file's digest, and its sums


def test_the_keyboard_alone_leads_from_the_catalogue_to_a_table(reader):
    read(reader, "/index.html")
    body = reader.driver.find_element(By.TAG_NAME, "body")
    for _ in range(30):
        body.send_keys(Keys.TAB)
        href = reader.script("return document.activeElement.getAttribute('href') ?? ''")
        body = reader.driver.switch_to.active_element
        if "d/once/" in href and "about" not in href:
            break
    body.send_keys(Keys.ENTER)
    reader.wait(lambda: reader.all("main table") and reader.is_settled())
    assert "/d/once/" in reader.driver.current_url


def test_files_are_made_in_the_browser(reader):
    read(reader, TABLE)
    for ending in (".xlsx", ".csv", ".jsonstat.json", ".px"):
        name = ending.replace(".", "-")
        reader.script("arguments[0].click()", reader.find(f"#download{name}"))
        file = reader.downloads / f"once-region-sex{ending}"
        reader.wait(lambda file=file: file.exists() and file.stat().st_size)
    assert b'"region","sex","count"' in (reader.downloads / "once-region-sex.csv").read_bytes()


def test_an_object_store_without_folders_is_enough(driver, built, tmp_path):
    with object_store(built) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, "/index.html")
        visitor.follow(visitor.find("main a[href*='d/once/']"))
        visitor.wait(lambda: visitor.all("main table") and visitor.is_settled())
        visitor.follow(visitor.find(".panel a[href*='table/index.html']"))
        assert visitor.all("main table")
        assert visitor.complaints() == []


@pytest.fixture
def copied(built, tmp_path):
    shutil.copytree(built, tmp_path / "site")
    return tmp_path / "site"


def files_read(visitor):
    """The files that a page has read."""
    found = "return performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)"
    return [path.lstrip("/") for path in visitor.script(found)]


def flipped(content):
    return content[:-1] + bytes([content[-1] ^ 1])


FAULTS = {
    "missing": lambda path: path.unlink(),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "flipped": lambda path: path.write_bytes(flipped(path.read_bytes())),
}
HARMED = [(kind, "flipped") for kind in ("client.js", "style.css", "builder.js", ".json")]
HARMED += [("site.json", "truncated"), ("builder.js", "missing"), *((".bin", f) for f in FAULTS)]


def test_a_file_that_is_not_as_it_was_published_is_named_and_nothing_is_shown(
    driver, copied, tmp_path
):
    with plain_server(copied) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, TABLE)
        needed = files_read(visitor)
        for kind, fault in HARMED:
            path = next(path for path in reversed(needed) if path.endswith(kind))
            content = (copied / path).read_bytes()
            FAULTS[fault](copied / path)
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            read(visitor, TABLE)
            visitor.wait(lambda: visitor.all("[role=alert]"))
            assert path in visitor.find("[role=alert]").text
            assert visitor.all("td") == []
            assert visitor.barriers() == []
            (copied / path).write_bytes(content)
        visitor.complaints()


def test_cells_that_go_missing_under_a_visitor_are_named(driver, copied, tmp_path):
    with plain_server(copied) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, TABLE)
        assert visitor.figures()
        for path in (copied / "files").glob("*.bin"):
            path.unlink()
        visitor.find(".panel a[href*='columns=age'], .panel a[href*='age']").click()
        visitor.wait(lambda: visitor.all("[role=alert]"))
        assert ".bin of this site is missing" in visitor.find("[role=alert]").text
        assert visitor.all("td") == []
        visitor.complaints()


@pytest.mark.parametrize("said", ["", "null", "[]", "{}", '{"styles": 1}', "no-hash"])
def test_a_head_that_is_none_is_named(driver, copied, tmp_path, said):
    head = (copied / "site.json").read_text(encoding="utf-8")
    text = head.replace("sha256-", "sha25v-") if said == "no-hash" else said
    (copied / "site.json").write_text(text, encoding="utf-8")
    with plain_server(copied) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, TABLE)
        assert "site.json" in visitor.find("[role=alert]").text
        assert visitor.all("td") == []
        visitor.complaints()


def test_cells_of_another_edition_are_named(driver, copied, tmp_path):
    """Files of two editions that were mixed up: one has the name of the other."""
    with plain_server(copied) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, TABLE)
        path = next(path for path in files_read(visitor) if path.endswith(".bin"))
        write_site(site_of("2027", 1), copied)
        read(visitor, TABLE)
        other = next(path for path in files_read(visitor) if path.endswith(".bin"))
        assert other != path
        shutil.copy(copied / path, copied / other)
        driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        read(visitor, TABLE)
        visitor.wait(lambda: visitor.all("[role=alert]"))
        assert other in visitor.find("[role=alert]").text
        visitor.complaints()


def test_a_visitor_in_the_middle_sees_one_edition_or_the_other(driver, copied, tmp_path):
    sites = {edition: site_of(edition, k) for k, edition in enumerate(("2026", "2027"))}
    expected = {
        edition: table_of(site.datasets["once"], rows="region", columns="sex")
        for edition, site in sites.items()
    }
    with plain_server(copied) as address:
        visitor = at(driver, address, tmp_path)
        read(visitor, TABLE)
        assert visitor.figures() == expected["2026"]
        write_site(sites["2027"], copied)
        path = f"{TABLE}&chart=bars"
        visitor.script("return window.answer_page(arguments[0]).then(() => 1)", address + path)
        read(visitor, TABLE)
        assert visitor.figures() == expected["2027"]
        assert "2027" in visitor.find("main").text


def test_firefox_shows_the_same(plain):
    """Debian's Firefox, driven over WebDriver BiDi."""
    firefox, node = shutil.which("firefox-esr"), shutil.which("node")
    if firefox is None or node is None:
        pytest.fail("The browser tests need Firefox and node: sudo apt-get install firefox-esr npm")
    script = Path(__file__).with_name("firefox.mjs")
    asked = {"firefox": firefox, "address": plain, "pages": [TABLE, *PAGES.values()]}
    done = subprocess.run(
        [node, script], input=json.dumps(asked), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    table, *others = json.loads(done.stdout)
    dataset = site_of().datasets["once"]
    assert table["figures"] == table_of(dataset, rows="region", columns="sex")
    charts = {name: page["charts"] for name, page in zip(PAGES, others, strict=True)}
    assert {name for name, n in charts.items() if n} >= {"levels", "layers", "picking"}
    for page in (table, *others):
        assert page["barriers"] == []
        assert page["complaints"] == []
        assert page["width"] <= 390
