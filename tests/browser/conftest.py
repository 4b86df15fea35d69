"""A demo site and one browser for all tests of a module."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.serve.process import started

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
    "--lang=en",
    "--force-prefers-reduced-motion",  # clicks do not wait for smooth scrolling
    "--window-size=1280,1000",
)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
INSTALL = "The browser tests need Chromium: sudo apt-get install chromium chromium-driver"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SECONDS = 20


class Visitor:
    """A person at a browser."""

    def __init__(self, driver, address, downloads):
        self.driver, self.address, self.downloads = driver, address.rstrip("/"), downloads

    def open(self, path=""):
        self.driver.get(self.address + path)

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def link(self, text):
        return self.driver.find_element(By.LINK_TEXT, text)

    def wait(self, condition):
        """Wait until a condition holds; while pages change the driver may have none to speak of."""
        patient = WebDriverWait(self.driver, SECONDS, 0.05, [WebDriverException])
        return patient.until(lambda _: condition())

    def follow(self, element):
        """Use a control, and wait for the page it leads to."""
        before = self.driver.current_url
        element.click()
        self.wait(lambda: self.driver.current_url != before and self.is_settled())

    def is_settled(self):
        return self.script(
            "return document.readyState === 'complete' && !document.querySelector('[aria-busy]')"
        )

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    @property
    def title(self):
        return self.find("h1").text

    @property
    def query(self):
        return urlsplit(self.driver.current_url).query

    def figures(self):
        return self.script(
            "return [...document.querySelectorAll('.sheet tbody tr')].map((r) => "
            "[...r.querySelectorAll('td')].map((td) => td.textContent))"
        )

    def focused(self):
        return self.script("return document.activeElement.id || document.activeElement.className")

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )

    def with_scripts(self, are_on):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not are_on})

    def complaints(self):
        """What the browser has to say of the pages, but for refusals, which are meant."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        return [message for message in said if "status of 4" not in message]

    def asked_hosts(self):
        """The hosts that were asked for anything since the last time."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = urlsplit(message["params"]["request"]["url"])
                hosts |= {address.netloc} if address.scheme.startswith("http") else set()
        return hosts

    def barriers(self):
        """What axe-core finds on the page, everything unfolded."""
        if not AXE.exists():
            pytest.fail("The browser tests need axe-core: npm install --prefix tests/browser")
        self.script("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        self.script(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const [tags, done] = arguments; axe.run(document, {runOnly: tags}).then(done)", WCAG
        )
        return [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="session")
def address(folder):
    with started("demo", "--persons", 5_000, "--folder", folder, "--port", 0) as (_, url):
        yield url


@pytest.fixture
def token(folder, address):
    """The token of a custodian of the demo site."""
    command = ["token", "add", "ann", "--role", "custodian", "--site", str(folder / "site.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "discreet.cli", *command], capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.fail(INSTALL)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    found.set_script_timeout(SECONDS)
    try:
        yield found
    finally:
        found.quit()


@pytest.fixture
def visitor(driver, address, tmp_path):
    """A visitor who was never here before; pages must give the browser nothing to complain of."""
    driver.delete_all_cookies()
    driver.execute_cdp_cmd(
        "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    found = Visitor(driver, address, tmp_path)
    found.with_scripts(True)
    found.resize(1280)
    found.asked_hosts()
    found.complaints()
    yield found
    assert found.complaints() == []
    assert found.asked_hosts() <= {urlsplit(address).netloc}
