"""Streams of words: secret ones are uniform, fresh and never shared; simulated ones repeat."""

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from support.statistics import FALSE_ALARM
from targetdp import GaussianNoise
from targetdp._core import Words
from targetdp.noise import PublicWords, SecretWords, WordStream, word_stream
from targetdp.noise._random_words import SimulatedWords, fresh_key


@pytest.fixture(autouse=True)
def real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have steady ones instead (tests/support/steady_keys.py)."""
    monkeypatch.setattr("targetdp.noise._random_words.fresh_key", fresh_key)


def draw(stream: WordStream, count: int) -> Words:
    out = np.empty(count, dtype=np.uint64)
    stream.fill(out)
    return out


@pytest.mark.parametrize("stream", [SecretWords(), SimulatedWords(np.random.default_rng(1)), PublicWords(1)])
def test_bytes_are_uniform(stream: WordStream) -> None:
    if isinstance(stream, SecretWords):
        stream = SecretWords()  # a stream belongs to the thread that made it
    counts = np.bincount(draw(stream, 200_000).view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_a_stream_goes_on_where_it_stopped() -> None:
    whole = draw(PublicWords(3), 1000)
    stream = PublicWords(3)
    np.testing.assert_array_equal(np.concatenate([draw(stream, 300), draw(stream, 700)]), whole)


def test_long_fills_cross_the_internal_chunk() -> None:
    words = draw(SecretWords(), (1 << 14) * 3 + 5)
    assert len(np.unique(words)) == len(words)


def test_keys_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a secret stream is that of its key and of nothing else."""
    assert len({fresh_key() for _ in range(100)}) == 100
    monkeypatch.setattr(os, "urandom", bytes)
    assert fresh_key() == bytes(32)
    zeros = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update(bytes(800))
    assert draw(SecretWords(), 100).tobytes() == zeros


def test_secret_streams_never_repeat() -> None:
    drawn = np.concatenate([draw(SecretWords(), 1000) for _ in range(50)])
    assert len(np.unique(drawn)) == len(drawn)


def test_a_secret_stream_serves_one_thread_only() -> None:
    stream = SecretWords()
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="outside the process and thread"):
        pool.submit(draw, stream, 1).result()


def test_a_secret_stream_cannot_be_copied() -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            attempt(SecretWords())


def child_result(work: object) -> bytes:
    """Run a function in a forked child and return what it wrote."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover (the child)
        try:
            os.write(write, work())  # type: ignore[operator]
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return data


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_is_refused_the_parents_stream() -> None:
    stream = SecretWords()
    draw(stream, 10)

    def work() -> bytes:
        try:
            return draw(stream, 10).tobytes()
        except RuntimeError:
            return b"refused"

    assert child_result(work) == b"refused"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_workers_and_threads_release_different_noise() -> None:
    mechanism = GaussianNoise(B=0.25, epsilon=4, delta=1e-5)
    X = np.zeros((50, 2))
    mechanism.privatize(X)  # whatever state there could be, it exists before the fork
    children = [np.frombuffer(child_result(lambda: mechanism.privatize(X).tobytes())) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        barrier = threading.Barrier(4)

        def work(_: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            barrier.wait()
            return mechanism.privatize(X).ravel()

        threads = list(pool.map(work, range(4)))
    everything = np.concatenate([*children, *threads, mechanism.privatize(X).ravel()])
    # Some of 800 values on a grid may coincide; a shared stream would repeat 100 at a time.
    assert len(np.unique(everything)) > len(everything) - 5


def test_a_release_cannot_be_repeated_and_a_simulation_can() -> None:
    mechanism = GaussianNoise(B=0.25, epsilon=4, delta=1e-5)
    X = np.zeros((20, 3))
    assert not np.array_equal(mechanism.privatize(X), mechanism.privatize(X))
    first = mechanism.privatize(X, np.random.default_rng(1))
    np.testing.assert_array_equal(first, mechanism.privatize(X, np.random.default_rng(1)))
    np.random.seed(0)  # noqa: NPY002 (numpy's global state must have no influence)
    a = mechanism.privatize(X)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(a, mechanism.privatize(X))


def test_word_stream_picks_by_purpose() -> None:
    assert isinstance(word_stream(None), SecretWords)
    assert isinstance(word_stream(np.random.default_rng(0)), SimulatedWords)
    with pytest.raises(TypeError, match=r"rng = 7 .*default_rng"):
        word_stream(7)  # type: ignore[arg-type]
