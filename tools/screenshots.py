"""Pictures of pages, to be looked at: python tools/screenshots.py ADDRESS FOLDER.

ADDRESS is that of a running demo, or the folder of the built documentation, `docs/_build`. A phone
(390 px), a screen (1280 px), both dark, and what is printed (PDF, with a PNG of each page where
poppler's `pdftoppm` is installed).
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from pathlib import Path

from selenium import webdriver

PAGES = {
    "catalogue": "/",
    "start": "/d/census",
    "wide": "/d/census/table?rows=region[province]&columns=age[age]&columns=sex&chart=bars",
    "folded": "/d/census/table?rows=region&columns=education[education_level]&chart=heat",
    "labels": "/d/survey/table?rows=industry[section]&columns=occupation[major_group]&chart=bars",
    "zeros": "/d/census/table?rows=age&columns=education[leaves]&chart=bars",
}
DOCUMENTATION = {
    "front": "/index.html",
    "reference": "/reference/records.html",
    "tutorial": "/tutorials/010_first_publication.html",
    "formulas": "/methods/fitting.html",
}
WIDTHS = {"phone": 390, "screen": 1280}


def driver() -> webdriver.Chrome:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--lang=en",
    ):
        options.add_argument(flag)
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    return webdriver.Chrome(options, service)


def take(address: str, folder: Path, pages: dict[str, str]) -> None:
    """Pictures of every page in every form."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = driver()
    try:
        for name, path in pages.items():
            for kind, width in WIDTHS.items():
                for scheme in ("light", "dark"):
                    _look(browser, width, scheme)
                    browser.get(f"{address}{path}")
                    _picture(browser, width, folder / f"{name}-{kind}-{scheme}.png")
            _look(browser, 1280, "light")
            browser.get(f"{address}{path}")
            _print(browser, folder / f"{name}-print.pdf")
    finally:
        browser.quit()


def _look(browser: webdriver.Chrome, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def _picture(browser: webdriver.Chrome, width: int, path: Path, most: int = 2600) -> None:
    height = min(browser.execute_script("return document.documentElement.scrollHeight"), most)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    asked = {"format": "png", "clip": clip, "captureBeyondViewport": True}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", asked)
    path.write_bytes(base64.b64decode(found["data"]))


def _print(browser: webdriver.Chrome, path: Path) -> None:
    found = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    path.write_bytes(base64.b64decode(found["data"]))
    if shutil.which("pdftoppm"):
        stem = str(path.with_suffix(""))
        subprocess.run(["pdftoppm", "-r", "60", "-png", str(path), stem], check=True)


if __name__ == "__main__":
    place = sys.argv[1].rstrip("/")
    built = Path(place).resolve()
    if built.is_dir():
        take(built.as_uri(), Path(sys.argv[2]), DOCUMENTATION)
    else:
        take(place, Path(sys.argv[2]), PAGES)
