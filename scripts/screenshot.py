"""Make the picture of the decision page that the README shows: python scripts/screenshot.py FOLDER OUT.png.

FOLDER is a finished sweep. Needs Chromium (Debian's package `chromium`) beside the `dev` extra.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 720


def screenshot(folder: Path, out: Path) -> None:
    """The first screen of the folder's page."""
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        raise SystemExit("no Chromium was found: install the package chromium")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        page = Path(scratch) / "page.html"
        command = [sys.executable, "-m", "targetdp", "report", str(folder), "--out", str(page), "--quiet"]
        subprocess.run(command, check=True)  # noqa: S603
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        view.goto(page.as_uri())
        view.wait_for_selector("body[data-ready=yes]")
        out.parent.mkdir(parents=True, exist_ok=True)
        view.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]), Path(sys.argv[2]))
