"""The documentation site is complete, and nothing in it comes from another host."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import targetdp
from support.docs import DOCS

ROOT = DOCS.parent
CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))

needs_the_tool = pytest.mark.skipif(
    find_spec("zensical") is None and os.environ.get("TARGETDP_REQUIRE_SITE") != "1",
    reason="the site is built by zensical, which is not installed here: make docs",
)


def pages_of(entry: Any) -> Iterator[str]:
    """All pages of a navigation: an entry is a page, or a title with a page or with more entries."""
    if isinstance(entry, str):
        yield entry
        return
    for below in entry.values() if isinstance(entry, dict) else entry:
        yield from pages_of(below)


def test_every_page_is_in_the_navigation_or_left_out_on_purpose() -> None:
    listed = list(pages_of(CONFIGURATION["nav"]))
    left_out = CONFIGURATION.get("not_in_nav", "").split()
    assert sorted([*listed, *left_out]) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_lists_and_tables_begin_behind_an_empty_line(page: str) -> None:
    """Without it the site takes them for more words of the paragraph, though other readers do not."""
    begins, before, fenced = r"(?:[-*] |\d+\. |\|)", "", False
    glued = []
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if before and not fenced and re.match(begins, line) and not re.match(rf"{begins}|#|<!--| ", before):
            glued.append(line)
        before = line
    assert not glued


def documented() -> set[str]:
    """Everything that the reference shows."""
    texts = (path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    return {name for text in texts for name in re.findall(r"^::: ([\w.]+)$", text, flags=re.MULTILINE)}


def test_the_reference_has_every_public_name() -> None:
    last = {name.rpartition(".")[2] for name in documented()}
    assert set(dir(targetdp)) - last == {"__version__", "Floats", "check"}


@pytest.mark.parametrize("name", sorted(documented()))
def test_what_the_reference_shows_exists_and_explains_itself(name: str) -> None:
    home, _, last = name.rpartition(".")
    assert getattr(import_module(home), last).__doc__


class _Page(HTMLParser):
    """What a built page loads, what it links to, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads, self.links, self.places = list[str](), list[str](), set[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places.update(found[name] for name in ("id", "name") if name in found)
        loaded = [found[name] for name in ("src", "srcset", "data", "poster", "action") if name in found]
        if tag == "link" and not {"next", "prev", "canonical"} & set(found["rel"].split()):
            loaded.append(found["href"])
        elif "href" in found:
            self.links.append(found["href"])
        self.loads += loaded + re.findall(r"url\(([^)]+)\)", found.get("style", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in a place of its own from what is in the tree."""
    place = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", place)
    shutil.copytree(DOCS, place / "docs")
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "site"


@needs_the_tool
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path, page in built(site).items():
        assert page.loads
        assert [target for target in page.loads if urlsplit(target).netloc] == [], path.name
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        loaded = re.findall(r"url\(\s*[\"']?([^\"')]+)", text) + re.findall(r"@import\s+[\"']([^\"']+)", text)
        assert [target for target in loaded if not target.startswith("data:")] == [], sheet.name


@needs_the_tool
def test_every_page_is_built_and_what_it_names_is_there(site: Path) -> None:
    pages = built(site)
    del pages[site / "404.html"]  # a server shows it at any address, so it names things from the root
    assert set(pages) == {site / page.replace(".md", ".html") for page in PAGES}
    for path, page in pages.items():
        for target in (*page.loads, *(link for link in page.links if not urlsplit(link).scheme)):
            to = urlsplit(target)
            file = (path.parent / unquote(to.path)).resolve() if to.path else path
            assert file.is_file(), (path.name, target)
            if to.fragment and file in pages:
                assert unquote(to.fragment) in pages[file].places, (path.name, target)


def built(site: Path) -> dict[Path, _Page]:
    return {path: _Page(path) for path in site.rglob("*.html")}


@needs_the_tool
def test_what_docstrings_guarantee_stands_out(site: Path) -> None:
    text = (site / "reference" / "guarantees.html").read_text(encoding="utf-8")
    docstring = ast.get_docstring(_class("guarantee.py", "Guarantee")) or ""
    for word in ("Guarantees:", "Does not guarantee:", "Edges:"):
        assert f"\n{word} " in docstring
        assert f"<p><strong>{word}</strong>" in text


def _class(file: str, name: str) -> ast.ClassDef:
    tree = ast.parse((ROOT / "src" / "targetdp" / file).read_text(encoding="utf-8"))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


@needs_the_tool
def test_read_from_a_disk_it_asks_no_other_host_and_can_be_searched(site: Path) -> None:
    """In a browser, since scripts may load more than pages name."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: the site is not opened")
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("no chromium: the site is not opened in a browser")
    asked, troubles = list[str](), list[str]()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        for name in ("tutorial.html", "reference/index.html"):
            page.goto((site / name).as_uri())
        page.keyboard.press("Control+k")
        page.keyboard.type("neighborhood")
        page.get_by_text("What B means: the crowd").first.wait_for(state="visible", timeout=30_000)
        browser.close()
    assert asked
    assert [url for url in asked if not url.startswith("file:")] == []
    assert troubles == []
