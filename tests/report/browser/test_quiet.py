"""The file needs nothing but itself. That it asks for nothing and never complains, every test here checks."""

from html.parser import HTMLParser

import pytest
from playwright.sync_api import Browser

from .conftest import Recipe


class Links(HTMLParser):
    """Every address in an attribute, and the policy."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.policy: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        names = ("src", "href", "xlink:href", "srcset", "action", "data", "poster", "formaction")
        self.addresses += [str(given[name]) for name in names if name in given]


@pytest.mark.parametrize("name", ["aid", "lending", "names"])
def test_no_address_in_the_file_leaves_it(page_of: Recipe, name: str) -> None:
    links = Links()
    links.feed(page_of(name).html.read_text(encoding="utf-8"))
    assert "#check" in links.addresses
    assert all(address.startswith("#") for address in links.addresses)
    assert links.policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in links.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert "unsafe-eval" not in links.policy


def test_the_policy_stops_whatever_would_leave_the_page(browser: Browser, page_of: Recipe) -> None:
    """Even if the page wanted to ask a server, the browser would not let it."""
    page = browser.new_page()
    page.goto(page_of("aid").html.as_uri())
    stopped = page.evaluate("""async () => {
      const stopped = [];
      document.addEventListener("securitypolicyviolation", (event) => stopped.push(event.effectiveDirective));
      await fetch("http://127.0.0.1:9/").catch(() => null);
      document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/x.png" }));
      const run = () => { try { new Function("return 1")(); } catch (error) { stopped.push(error.name); } };
      setTimeout(run, 0);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return stopped;
    }""")
    page.close()
    assert {"connect-src", "img-src", "EvalError"} <= set(stopped)
