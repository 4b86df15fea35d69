"""Install what the tests need beside `.venv`: Debian packages, and an object store to test with."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

STORE = Path(__file__).parents[1] / ".deps" / "moto"
"""Where the stand-in for an object store lives: what it needs contradicts our own pins."""
# program the tests call, by name or by place -> Debian packages that bring it
NEEDED = {
    "chromium": ["chromium", "chromium-driver"],
    "chromedriver": ["chromium-driver"],
    "firefox-esr": ["firefox-esr"],
    "Rscript": ["r-base-core"],
    "/usr/lib/R/site-library/httr": ["r-cran-httr"],
    "/usr/lib/R/site-library/jsonlite": ["r-cran-jsonlite"],
    "java": ["default-jre-headless"],
    "npm": ["npm"],
    "/usr/lib/postgresql/*/bin/initdb": ["postgresql"],
}


def is_there(program: str) -> bool:
    """Whether a program can be called; Debian keeps PostgreSQL's server off the path."""
    return bool(glob.glob(program) if program.startswith("/") else shutil.which(program))


def main() -> int:
    """Install what is missing; 1 when that is not possible."""
    return install_packages() or install_store()


def install_store() -> int:
    """Make the environment of the stand-in for an object store."""
    if (STORE / "bin" / "moto_server").exists():
        return 0
    sys.stdout.write("==> installing moto, a stand-in for an object store\n")
    sys.stdout.flush()
    pip = [str(STORE / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for step in (
        [sys.executable, "-m", "venv", str(STORE)],
        [*pip, "--disable-pip-version-check", "moto[server,s3]"],
    ):
        if subprocess.run(step, stdout=subprocess.DEVNULL).returncode:
            sys.stderr.write(f"could not run: {' '.join(step)}\n")
            return 1
    return 0


def install_packages() -> int:
    """Install the Debian packages that are missing."""
    missing = sorted(
        {p for program, packages in NEEDED.items() if not is_there(program) for p in packages}
    )
    if not missing:
        return 0
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.stderr.write(f"The tests need: sudo apt-get install {' '.join(missing)}\n")
        return 1
    sys.stdout.write(f"==> installing Debian packages: {' '.join(missing)}\n")
    sys.stdout.flush()
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update", "--quiet"], command):
        if subprocess.run(step, env=quiet, stdout=subprocess.DEVNULL).returncode:
            sys.stderr.write(f"could not run: {' '.join(step)}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
