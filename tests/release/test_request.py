"""Weights files come from somebody else: every way to get one wrong has a clear message."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from targetdp.mechanisms import MOST_SCORES
from targetdp.release import weights_text
from targetdp.release._weights_file import LARGEST_FILE, Weights, must_differ, read_weights

GOOD = """
scores = ["poverty", "need"]
[weights]
night_calls = [0.31, 0]
"top ups.é" = [-2, 1e300]
[learned]
release = "8c1f"
program = "aid"
expectation = { accuracy = 0.7, interval = [0.6, 0.8] }
"""


def read(folder: Path, content: str | bytes) -> Weights:
    place = folder / "weights.toml"
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_weights(place)


def read_or_refused(folder: Path, content: bytes) -> Weights | None:
    try:
        return read(folder, content)
    except ValueError as error:
        refused = str(error)
    assert "weights file" in refused
    return None


def test_a_file_is_read_as_it_says(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert found.features == ("night_calls", "top ups.é")
    assert found.scores == ("poverty", "need")
    np.testing.assert_array_equal(found.matrix, [[0.31, -2.0], [0.0, 1e300]])
    assert found.release == "8c1f"
    assert found.learned["expectation"] == {"accuracy": 0.7, "interval": [0.6, 0.8]}
    assert not found.matrix.flags.writeable


def test_one_score_needs_no_lists_and_no_origin(tmp_path: Path) -> None:
    found = read(tmp_path, 'scores = ["s"]\n[weights]\na = 1\nb = [-0.5]\n')
    np.testing.assert_array_equal(found.matrix, [[1.0, -0.5]])
    assert (found.release, dict(found.learned)) == (None, {})


def test_order_does_not_matter_but_names_do(tmp_path: Path) -> None:
    found = read(tmp_path, 'scores = ["s"]\n[weights]\nb = 2\na = 1\nc = 3\n')
    np.testing.assert_array_equal(found.in_order_of(("a", "b", "c")), [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="has no weight for 'd' and has weights for 'c'"):
        found.in_order_of(("a", "b", "d"))
    with pytest.raises(ValueError, match="the weights file has weights for 'c': it must name"):
        found.in_order_of(("a", "b"))
    with pytest.raises(ValueError, match="write 0 for one that does not count"):
        found.in_order_of(("a", "b", "c", "d"))


HEAD = 'scores = ["s"]\n[weights]\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "scores must be given; weights must be given"),
        ("scores = [", "it is not TOML"),
        (b'scores = ["\xff"]', "it is not UTF-8 text"),
        (b"\xef\xbb\xbf" + GOOD.encode(), "it is not TOML"),
        ("\0", "it is not TOML"),
        ('scores = "s"\n[weights]\na = 1', "scores = 's'"),
        ("scores = []\n[weights]\na = 1", "scores = []"),
        ("scores = [1]\n[weights]\na = 1", "scores.0 = 1"),
        ('scores = ["s"]\n[weights]\n', "weights = {}"),
        ('scores = ["s"]\nweights = 3', "weights = 3"),
        (HEAD + "a = nan", "weights.a = nan: a weight must be a finite number"),
        (HEAD + "a = -inf", "weights.a = -inf: a weight must be a finite number"),
        (HEAD + "a = 1e999", "weights.a = inf"),
        (HEAD + f"a = 1{'0' * 400}", "a weight must be a finite number"),
        (HEAD + f"a = {'9' * 5000}", "a number in it cannot be read"),
        (HEAD + "a = true", "weights.a = True"),
        (HEAD + 'a = "1"', "weights.a = '1'"),
        (HEAD + "a = 2026-01-01", "weights.a = datetime.date"),
        (HEAD + "a = { b = 1 }", "weights.a = {'b': 1}"),
        (HEAD + "a = [[1]]", "weights.a = [[1]]"),
        (HEAD + "a = []", "'a': 0 weights, and there is 1 score"),
        (HEAD + "a = [1, 2]\nb = 3", "'a': 2 weights, and there is 1 score; give one weight for each"),
        ('scores = ["s", "t"]\n[weights]\na = [1, 2]\nb = 3', "'b': 1 weights, and there are 2 scores"),
        (HEAD + "a = 1\na = 2", "it is not TOML: Cannot overwrite a value"),
        (HEAD + "a = 0\nb = 0", "weights[0] is zero: a score must depend on some column"),
        (HEAD + "a = 1\n[extra]\nb = 1", "extra = {'b': 1}: Extra inputs are not permitted"),
        ("name = 1\n" + HEAD + "a = 1", "name = 1: Extra inputs are not permitted"),
        (HEAD + "a = 1\n[learned]\nrelease = 3", "learned.release = 3"),
        (HEAD + 'a = 1\n[learned]\nrelease = ""', "release = ''"),
        ('scores = ["s", "s"]\n[weights]\na = [1, 2]\nb = [2, 1]', "score 's' has the name of column 's'"),
        ('scores = ["s", "S"]\n[weights]\na = [1, 2]\nb = [2, 1]', "score 'S' has the name of column 's'"),
        ('scores = [""]\n[weights]\na = 1', "scores = '' is no plain name"),
        ('scores = [" s"]\n[weights]\na = 1', "scores = ' s' is no plain name"),
        ('scores = ["s\\n"]\n[weights]\na = 1', "is no plain name"),
        ('scores = ["a\\nb"]\n[weights]\na = 1', "is no plain name"),
        ('scores = ["\\u202e"]\n[weights]\na = 1', "is no plain name"),
        ('scores = ["é"]\n[weights]\na = 1', "without accents"),
        ('scores = ["1st"]\n[weights]\na = 1', "use a letter, then"),
        ('scores = ["s), which is public. (t"]\n[weights]\na = 1', "is no plain name"),
        (f'scores = ["{"s" * 64}"]\n[weights]\na = 1', "then up to 62 letters"),
        ('scores = ["s", "t"]\n[weights]\na = [1, 2]', "give at most 1 scores"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=r"weights file .*weights\.toml") as refused:
        read(tmp_path, content)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"weights file .*absent.toml cannot be read: No such file"):
        read_weights(tmp_path / "absent.toml")
    with pytest.raises(ValueError, match=r"cannot be read: Is a directory"):
        read_weights(tmp_path)


@pytest.mark.parametrize("count", [MOST_SCORES + 1, 5_000])
def test_thousands_of_directions_are_refused_with_their_price(tmp_path: Path, count: int) -> None:
    names = ", ".join(f'"s{i}"' for i in range(count))
    weights = f"[{', '.join('1' * count)}]"
    with pytest.raises(ValueError, match=f"at most {MOST_SCORES}, since each is paid for with noise on all"):
        read(tmp_path, f"scores = [{names}]\n[weights]\na = {weights}\n")


@pytest.mark.parametrize(
    "bomb",
    [
        ".".join("a" * 50_000) + " = 1",
        f"[{'.'.join('a' * 50_000)}]",
        '"\u2028".' * 20_000 + "a = 1",
        "a = " + "[" * 100_000,
        "a = " + "{ a = " * 5_000,
        "[[a]]\n" * 5_000,
        "".join(f"[a{i}.b.c]\n" for i in range(5_000)),
        "".join(f"k{i}{'.a' * 99} = 1\n" for i in range(9_000)),
        "".join(f"k{i}{'.a' * 16} = 1\n" for i in range(40_000)),
        "".join(f"k{i}{'.1' * 99} = [1, 2]\n" for i in range(5_000)),
        f"[1{'.1' * 99}]",
        "x" * (LARGEST_FILE + 1),
    ],
    ids=[
        "dotted",
        "header",
        "hidden lines",
        "lists",
        "tables",
        "array of tables",
        "headers",
        "dotted lines",
        "many dotted lines",
        "dotted numbers",
        "numbers for a header",
        "large",
    ],
)
def test_what_would_take_minutes_to_read_is_refused_before(tmp_path: Path, bomb: str) -> None:
    """Each takes many seconds or more, or all of the stack, if it is parsed as it is."""
    with pytest.raises(ValueError, match=r"nested too deeply|more than [\d,]+ bytes"):
        read(tmp_path, bomb)


def test_numbers_with_points_nest_nothing(tmp_path: Path) -> None:
    """As many weights as may be in one line, in one line or several, and names with points of their own."""
    names = ", ".join(f'"s{i}"' for i in range(MOST_SCORES))
    numbers = [[f"{1 + (i == j)}.25e-1" for i in range(MOST_SCORES)] for j in range(MOST_SCORES + 1)]
    lines = [f'"a.b.{j}" = [{", ".join(row)}]' for j, row in enumerate(numbers)]
    lines[0] = lines[0].replace("[", "[\n").replace("]", "\n]")
    found = read(tmp_path, f"scores = [{names}]\n[weights]\n" + "\n".join(lines))
    assert found.matrix.shape == (MOST_SCORES, MOST_SCORES + 1)


def test_messages_stay_short_whatever_is_in_the_file(tmp_path: Path) -> None:
    many = "".join(f'column_{i} = "{"x" * 500}"\n' for i in range(2_000))
    with pytest.raises(ValueError, match="and 1,992 more problems") as refused:
        read(tmp_path, HEAD + many)
    assert len(str(refused.value)) < 4_000
    with pytest.raises(ValueError, match="and 1,992 more: 2 weights") as refused:
        read(tmp_path, HEAD + "".join(f"column_{i} = [1, 2]\n" for i in range(2_000)))
    assert len(str(refused.value)) < 500


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_written_is_read_back(tmp_path: Path, data: st.DataObject) -> None:
    characters = st.characters(exclude_categories=["Cs"])
    features = data.draw(st.lists(st.text(characters, max_size=12), min_size=2, max_size=6, unique=True))
    count = data.draw(st.integers(1, 2))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    row = st.lists(finite, min_size=len(features), max_size=len(features)).filter(any)
    matrix = data.draw(st.lists(row, min_size=count, max_size=count))
    scores = [f"score_{i}" for i in range(count)]
    text = weights_text(features, matrix, scores=scores, learned={"release": "r", "n": 3, "é\x7f": ["\x7f"]})
    found = read(tmp_path, text)
    assert (found.features, found.scores) == (tuple(features), tuple(scores))
    np.testing.assert_array_equal(found.matrix, matrix)
    assert found.learned == {"release": "r", "n": 3, "é\x7f": ["\x7f"]}


PIECES = st.sampled_from(
    ["scores", "weights", "[weights]", "[learned]", "[[", "]", "=", '"s"', "a", ".", "\n", "nan", "1e400",
     "0x1F", "[1, 2]", "{", "}", "true", "'''", '"""', "#", "-", "1979-05-27", "release", "\t", ","]
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=40).map(lambda p: "".join(p).encode())))
def test_whatever_is_in_a_file_it_is_read_or_refused_in_words(tmp_path: Path, content: bytes) -> None:
    found = read_or_refused(tmp_path, content)
    assert found is None or found.matrix.shape == (len(found.scores), len(found.features))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_good_file_with_one_spot_changed_is_read_or_refused_in_words(
    tmp_path: Path, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(GOOD) - 1))
    with_change = GOOD[:place] + data.draw(st.text(max_size=4)) + GOOD[place + data.draw(st.integers(0, 9)) :]
    found = read_or_refused(tmp_path, with_change.encode("utf-8", "surrogatepass"))
    assert found is None or np.isfinite(found.matrix).all()


@pytest.mark.parametrize(
    ("features", "matrix", "more", "message"),
    [
        (["a", "b"], [[1.0]], {}, "matrix has shape"),
        (["a"], [[float("nan")]], {}, "NaN or infinite"),
        (["a", "a"], [[1.0, 2.0]], {}, "Cannot overwrite"),
        (["a"], [[1.0]], {"scores": ["x\ny"]}, "no plain name"),
        (["a"], [[1.0]], {"learned": {"release": None}}, "TOML has no word for nothing"),
        (["a"], [[1.0]], {"learned": {"accuracy": float("nan")}}, "not JSON compliant"),
        (["a"], [[0.0]], {}, "is zero"),
    ],
)
def test_nothing_is_written_that_would_not_be_read(
    features: list[str], matrix: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        weights_text(features, matrix, **more)


def test_a_score_may_not_pass_for_another_column() -> None:
    assert must_differ(("s", "t"), ("id", "Calls", "calls")) == ("s", "t"), "columns are the holder's own"
    for taken in ("id", "CALLS"):
        with pytest.raises(ValueError, match="rename the score"):
            must_differ(("s", taken), ("id", "calls"))
