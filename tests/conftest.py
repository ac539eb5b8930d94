"""What all tests share: one thread for linear algebra, since small matrices crawl on two busy cores."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def single_threaded_algebra() -> Iterator[None]:
    with threadpool_limits(1):
        yield
