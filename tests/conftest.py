"""What all tests share: one thread for linear algebra (small matrices crawl on two busy cores), own keys."""

import os
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

from support import remembering
from support.signers import Signers
from support.steady_keys import SteadyKeys
from support.zygote import Zygote
from targetdp.accounting import SphericalLaplaceLoss

# No test asserts a time; and examples are the same each time, but where more of them are asked for.
hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize="TARGETDP_FUZZ" not in os.environ, database=None
)
hypothesis.settings.load_profile("steady")


FIRST = (
    "release/engine/test_spark.py",
    "release/engine/test_spark_decisions.py",
    "docs/test_readme.py",
    "examples/test_tour.py",
    "paper/test_findings.py",
)
"""These share what is dear to make, a Spark session, a comparison, sweeps: side by side, it is made once."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin; the many short ones, beside this file, even out the workers' end."""

    def place(item: pytest.Item) -> int:
        name = item.path.as_posix().rpartition("/tests/")[2]
        return FIRST.index(name) if name in FIRST else len(FIRST) + ("/" not in name)

    items.sort(key=place)


@pytest.fixture(autouse=True, scope="session")
def single_threaded_algebra() -> Iterator[None]:
    with threadpool_limits(1):
        yield


KEYS = SteadyKeys()
SIGNERS = Signers()


@pytest.fixture(autouse=True, scope="session")
def keys_are_steady() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("targetdp.noise._random_words.fresh_key", KEYS.draw)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """A fixture that tests share has keys and a list of desks of its own, whichever of them came first."""
    with (
        KEYS.of(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')!r}"),
        pytest.MonkeyPatch.context() as patch,
    ):
        if fixturedef.scope == "function" or (config := os.environ.get("XDG_CONFIG_HOME")) is None:
            return (yield)
        patch.setenv("XDG_CONFIG_HOME", own := tempfile.mkdtemp(dir=config))
        SIGNERS.trusted_in(own)
        made = yield
        SIGNERS.learn_from(own)
        return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with KEYS.of(item.nodeid):
        return (yield)


@pytest.fixture(autouse=True, scope="session")
def own_signing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches, or makes, the signing key of whoever runs it, nor the list of desks, nor finds one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TARGETDP_KEY", str(tmp_path_factory.mktemp("keys") / "signing-key.pem"))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("TARGETDP_DESK", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_list_of_desks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a user of her own: the same people at another test's desk are not known to hers."""
    monkeypatch.setenv("XDG_CONFIG_HOME", own := str(tmp_path_factory.mktemp("config")))
    SIGNERS.trusted_in(own)


@pytest.fixture(autouse=True, scope="module")
def curves_are_remembered(request: pytest.FixtureRequest) -> Iterator[None]:
    """In all tests but those of the accounting itself."""
    with pytest.MonkeyPatch.context() as patch:
        if "accounting" not in request.path.parts:
            for name, remembered in remembering.curves().items():
                patch.setattr(SphericalLaplaceLoss, name, remembered)
        yield


@pytest.fixture(scope="session")
def zygote(own_signing_key: None) -> Iterator[Zygote]:
    """Where runs of the command line are forked from; started when the first test asks for it."""
    with Zygote() as made:
        yield made
