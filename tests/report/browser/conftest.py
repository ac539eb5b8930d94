"""Debian's Chromium, headless and cut off from the network; every test fails if the page complains."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, expect, sync_playwright

from .pages import Made, made

Opened = Callable[..., Page]
"""Opens a page by its name or file; ``width``, ``height``, what follows the ``#`` of its address, whether its
``script`` may run, and any option of a browser context may follow."""

Recipe = Callable[[str], Made]

NAMES = ("chromium", "chromium-browser", "google-chrome")

PATIENCE = 120_000
"""Milliseconds until a test gives up: machines that run tests are busy."""

expect.set_options(timeout=PATIENCE / 4)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for each worker. It ends with this folder's tests: its event loop would disturb others."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing = f"no browser ({', '.join(NAMES)}): the decision page is not tested in one here"
        if os.environ.get("TARGETDP_REQUIRE_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update",
                  "--disable-sync", "--no-first-run"],
        )  # fmt: skip
        yield started
        started.close()


@pytest.fixture(scope="package")
def page_of(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Recipe:
    """A sweep and its page by name; workers share them."""
    base = tmp_path_factory.getbasetemp()
    shared: Path = base if worker_id == "master" else base.parent
    return lambda name: made(shared, name)


@pytest.fixture
def opened(browser: Browser, page_of: Recipe) -> Iterator[Opened]:
    """Pages without a network. At the end no page may have said a word or asked for anything but itself."""
    contexts, complaints, asked = [], [], []

    def complain(message: ConsoleMessage) -> None:
        complaints.append(f"{message.type}: {message.text}")

    def fail(error: Error) -> None:
        complaints.append(str(error))

    def note(request: Request) -> None:
        if not request.url.startswith("blob:"):  # what the page itself made, for a download
            asked.append(request.url.partition("#")[0])

    def start(
        name: str | Path,
        *,
        width: int = 1100,
        height: int = 900,
        kept: str = "",
        script: bool = True,
        **options: Any,
    ) -> Page:
        html = page_of(name).html if isinstance(name, str) else name
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, java_script_enabled=script, **options
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        context.on("request", note)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", fail)
        page.goto(html.as_uri() + kept)
        if script:
            page.wait_for_selector("body[data-ready=yes]")
        expected.add(html.as_uri())
        return page

    expected: set[str] = set()
    yield start
    for context in contexts:
        context.close()
    assert not complaints
    assert set(asked) == expected
