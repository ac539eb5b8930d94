"""What all tests share: one thread for linear algebra (small matrices crawl on two busy cores), own keys."""

from collections.abc import Iterator

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

hypothesis.settings.register_profile("no clock", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("no clock")


@pytest.fixture(autouse=True, scope="session")
def single_threaded_algebra() -> Iterator[None]:
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True, scope="session")
def own_signing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches, or makes, the signing key of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TARGETDP_KEY", str(tmp_path_factory.mktemp("keys") / "signing-key.pem"))
        yield
