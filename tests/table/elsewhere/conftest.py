"""A database server for the tests of this folder; each worker has its own."""

from collections.abc import Iterator

import pytest

from support.postgres import Postgres, started


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with started() as server:
        yield server
