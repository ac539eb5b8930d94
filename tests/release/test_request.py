"""Requests come from somebody else: each way to get one wrong has a clear message."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.release import FEATURES, make_desk, nothing_changes, request_of, table_of, write_parquet
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import MOST_SCORES
from targetdp.release import (
    Refused,
    Request,
    SigningKey,
    check_release,
    describe_request,
    make_request,
    privatize,
    read_request,
)
from targetdp.release._policy import MECHANISMS
from targetdp.release._request import (
    HOLDERS,
    LARGEST_FILE,
    parse_request,
    scores_must_differ,
)

GOOD = """
# as the page said
release = "scores"
B = 0.25
epsilon = 4
scores = ["poverty", "need"]
learned_from = "8c1f00"
program = "Novissi"
asked_by = "Ministry of Aid"
why = "phase 2, as agreed"
[weights]
night_calls = [0.31, 0]
"top ups.é" = [-2, 1e300]
"""


def read(folder: Path, content: str | bytes) -> Request:
    place = folder / "request.toml"
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_request(place)


def read_or_refused(folder: Path, content: bytes) -> Request | None:
    try:
        return read(folder, content)
    except ValueError as error:
        refused = str(error)
    assert refused.startswith("request ")
    return None


def test_a_file_is_read_as_it_says(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert (found.release, found.scores) == ("scores", ("poverty", "need"))
    assert tuple(found.weights or ()) == ("night_calls", "top ups.é")
    np.testing.assert_array_equal(found.matrix, [[0.31, -2.0], [0.0, 1e300]])
    assert (found.learned_from, found.program, found.asked_by) == ("8c1f00", "Novissi", "Ministry of Aid")
    assert found.why == "phase 2, as agreed"
    assert found.guarantee(1e-6) == Guarantee(0.25, 4.0, 1e-6)
    assert (found.delta, found.signature, found.signer) == (None, None, None)


def test_the_least_that_can_be_asked_for(tmp_path: Path) -> None:
    found = read(tmp_path, "B = 0.25\nepsilon = 4")
    assert found == Request(B=0.25, epsilon=4)
    assert (found.release, found.features, found.weights, found.scores) == ("rows", None, None, ())
    assert (found.mechanism, found.leave_out, found.tuned_on) == ("least-noise", (), None)
    with pytest.raises(ValueError, match="frozen"):
        found.epsilon = 8.0


def test_one_score_needs_no_lists_and_no_name(tmp_path: Path) -> None:
    found = read(tmp_path, 'release = "scores"\nB = 0.25\nepsilon = 4\n[weights]\na = 1\nb = [-0.5]\n')
    np.testing.assert_array_equal(found.matrix, [[1.0, -0.5]])
    assert found.scores == ("score",)


def test_a_request_about_a_sample_says_so_to_whoever_answers_it(tmp_path: Path) -> None:
    """The first request of a score or a decision: comments alone said that it is not about everybody."""
    asked = make_request(B=0.25, epsilon=4, sample_only=True)
    assert parse_request(asked.text()) == asked != make_request(B=0.25, epsilon=4)
    assert "about: a labelled sample only: give a table of these people" in describe_request(asked)
    desk = make_desk(tmp_path)
    for request, is_told in ((asked, True), (make_request(B=0.25, epsilon=4), False)):
        told = check_release(write_parquet(tmp_path / "in.parquet", table_of(60)), desk=desk, request=request)
        assert any("a labelled sample only" in one for one in told.warnings) == is_told
    with pytest.raises(ValueError, match='sample_only belongs to release = "rows"'):
        make_request(release="scores", B=0.25, epsilon=4, weights={"a": 1.0}, sample_only=True)


def test_order_does_not_matter_but_names_do(tmp_path: Path) -> None:
    found = request_of(release="scores", weights={"b": 2, "a": 1, "c": 3})
    np.testing.assert_array_equal(found.weights_for(("a", "b", "c")), [[1.0, 2.0, 3.0]])


# Fields of the data holder


@pytest.mark.parametrize("field", sorted(HOLDERS))
def test_a_field_of_the_holder_is_refused_by_name(tmp_path: Path, field: str) -> None:
    said = f"{field}: the data holder decides about that, in policy.toml, and no request does; leave it out"
    for value in ("true", '"as agreed"', "3", '["calls"]', "{ a = 1 }"):
        with pytest.raises(ValueError, match=r"^request .*request\.toml") as refused:
            read(tmp_path, f"B = 0.25\nepsilon = 4\n{field} = {value}\n")
        assert said in str(refused.value)
    with pytest.raises(ValueError, match="the data holder decides"):
        make_request(B=0.25, epsilon=4, **{field: "as agreed"})


@pytest.mark.parametrize(
    "field",
    ["override", "part", "population", "ledger", "no_sample", "keep", "pseudonymize", "key"],
)
def test_what_was_once_obeyed_is_refused(field: str) -> None:
    """Each of these ran with the holder's powers."""
    assert field in HOLDERS
    assert field not in Request.model_fields


def test_all_fields_of_the_holder_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep, override, population: the data holder decides"):
        read(tmp_path, 'B = 0.25\nepsilon = 4\noverride = "x"\nkeep = ["a"]\npopulation = "p"\n')


def test_what_is_nobody_s_field_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="epsilom is no field"):
        read(tmp_path, "B = 0.25\nepsilon = 4\nepsilom = 4\n")


# Every field


HEAD = "B = 0.25\nepsilon = 4\n"
SCORES = 'release = "scores"\n' + HEAD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "",
            "B must be given: people within this distance are hidden from each other; epsilon must be given",
        ),
        ("B = [", "it is not TOML"),
        (b'B = "\xff"', "it is not UTF-8 text"),
        (b"\xef\xbb\xbf" + GOOD.encode(), "it is not TOML"),
        ("\0", "it is not TOML"),
        ("B = 3\nepsilon = 4", "B = 3"),
        ("B = 0\nepsilon = 4", "B = 0"),
        ("B = nan\nepsilon = 4", "B = nan"),
        ('B = "0.25"\nepsilon = 4', "B = '0.25'"),
        ("B = true\nepsilon = 4", "B = True"),
        ("B = 0.25\nepsilon = -1", "epsilon = -1"),
        ("B = 0.25\nepsilon = inf", "epsilon = inf"),
        (HEAD + "delta = 1", "delta = 1"),
        (HEAD + "delta = 0", "delta = 0"),
        (HEAD + 'release = "tables"', "release = 'tables'"),
        (HEAD + 'release = "decisions"', "needs [[decisions]]"),
        (HEAD + "features = []", "features = []"),
        (HEAD + 'features = ["a", "a"]', "features names 'a' twice"),
        (HEAD + 'features = "a"', "features = 'a'"),
        (HEAD + 'mechanism = "magic"', "mechanism = 'magic' is not one of"),
        (HEAD + 'mechanism = "mondrian"', "mechanism = 'mondrian' is not one of"),
        (HEAD + "mechanism = 3", "mechanism = 3"),
        (HEAD + 'tuned_on = "hope"', "tuned_on = 'hope'"),
        (HEAD + 'leave_out = ["xyz"]', "leave_out.0 = 'xyz'"),
        (HEAD + 'leave_out = ["abc"]', "leave_out.0 = 'abc'"),
        (HEAD + 'page = "as told"', "page = 'as told'"),
        (HEAD + 'program = "Novissi. This release is safe for everybody"', "is no plain name"),
        (HEAD + 'asked_by = "Ministry\\n## The guarantee"', "asked_by"),
        (HEAD + 'asked_by = "<b>Ministry</b>"', "is no plain name"),
        (HEAD + 'asked_by = ""', "asked_by = ''"),
        (HEAD + "asked_by = 3", "is not text"),
        (HEAD + 'asked_on = "tomorrow"', "'tomorrow' is no day: write it as 2026-11-19"),
        (HEAD + 'asked_on = "20261119"', "is no day"),
        (HEAD + 'asked_on = "2026-02-30"', "is no day"),
        (HEAD + 'limits = "at least 80"', "limits"),
        (HEAD + 'limits = ["ok", "two\\nlines"]', "limits"),
        (HEAD + 'why = "a\\nb"', "why = 'a\\nb'"),
        (HEAD + f'why = "{"x" * 501}"', "is outside 1 to 500"),
        (HEAD + 'scores = ["s"]', 'scores belongs to release = "scores"'),
        (HEAD + "[weights]\na = 1", 'weights belongs to release = "scores"'),
        (HEAD + 'learned_from = "abcdef"', 'learned_from belongs to release = "scores"'),
        (SCORES, 'release = "scores" needs weights'),
        (SCORES + 'scores = "s"\n[weights]\na = 1', "scores = 's'"),
        (SCORES + "scores = [1]\n[weights]\na = 1", "scores.0 = 1"),
        (SCORES + "[weights]\n", "weights = {}"),
        (SCORES + "weights = 3", "weights = 3"),
        (SCORES + "[weights]\na = nan", "weights.a = nan: a weight must be a finite number"),
        (SCORES + "[weights]\na = -inf", "weights.a = -inf: a weight must be a finite number"),
        (SCORES + "[weights]\na = 1e999", "weights.a = inf"),
        (SCORES + f"[weights]\na = 1{'0' * 400}", "a weight must be a finite number"),
        (SCORES + f"[weights]\na = {'9' * 5000}", "a number in it cannot be read"),
        (SCORES + "[weights]\na = true", "weights.a = True"),
        (SCORES + '[weights]\na = "1"', "weights.a = '1'"),
        (SCORES + "[weights]\na = 2026-01-01", "weights.a = datetime.date"),
        (SCORES + "[weights]\na = { b = 1 }", "weights.a = {'b': 1}"),
        (SCORES + "[weights]\na = [[1]]", "weights.a = [[1]]"),
        (SCORES + "[weights]\na = []", "'a': 0 weights, and 1 score is asked for"),
        (SCORES + "[weights]\na = [1, 2]\nb = 3", "'a': 2 weights, and 1 score is asked for; give one"),
        (SCORES + 'scores = ["s", "t"]\n[weights]\na = [1, 2]\nb = 3', "'b': 1 weights, and 2 scores are"),
        (SCORES + "[weights]\na = 1\na = 2", "it is not TOML: Cannot overwrite a value"),
        (SCORES + "[weights]\na = 0\nb = 0", "weights[0] is zero: a score must depend on some column"),
        (SCORES + 'features = ["a"]\n[weights]\na = 1\nb = 1', "features and weights name different columns"),
        (
            SCORES + 'scores = ["s", "s"]\n[weights]\na = [1, 2]\nb = [2, 1]',
            "'s' has the name of column",
        ),
        (
            SCORES + 'scores = ["s", "S"]\n[weights]\na = [1, 2]\nb = [2, 1]',
            "'S' has the name of column",
        ),
        (SCORES + 'scores = [""]\n[weights]\na = 1', "scores = '' is no plain name"),
        (SCORES + 'scores = [" s"]\n[weights]\na = 1', "scores = ' s' is no plain name"),
        (SCORES + 'scores = ["s\\n"]\n[weights]\na = 1', "is no plain name"),
        (SCORES + 'scores = ["s), which is public. (t"]\n[weights]\na = 1', "is no plain name"),
        (SCORES + 'scores = ["=1+1"]\n[weights]\na = 1', "is no plain name"),
        (SCORES + 'scores = ["é"]\n[weights]\na = 1', "is no plain name"),
        (HEAD + "signature = 3", "signature = 3"),
        (HEAD + '[signature]\nkey = "x"', "signature.value must be given"),
    ],
)
def test_every_way_to_get_one_wrong_is_said_on_one_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=r"^request .*request\.toml: |^request .* cannot be read") as refused:
        read(tmp_path, content)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_asked_for_by_name(name: str) -> None:
    assert request_of(mechanism=name).mechanism == name


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"B = 3\.0.*epsilon = -1\.0"):
        make_request(B=3.0, epsilon=-1.0)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"request .*absent.toml cannot be read: No such file"):
        read_request(tmp_path / "absent.toml")
    with pytest.raises(ValueError, match=r"cannot be read: Is a directory"):
        read_request(tmp_path)


@pytest.mark.parametrize("count", [MOST_SCORES + 1, 5_000])
def test_thousands_of_directions_are_refused_with_their_price(tmp_path: Path, count: int) -> None:
    names = ", ".join(f'"s{i}"' for i in range(count))
    weights = f"[{', '.join('1' * count)}]"
    with pytest.raises(ValueError, match=f"at most {MOST_SCORES}, since each is paid for with noise on all"):
        read(tmp_path, f"{SCORES}scores = [{names}]\n[weights]\na = {weights}\n")


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
        "dotted", "header", "hidden lines", "lists", "tables", "array of tables", "headers", "dotted lines",
        "many dotted lines", "dotted numbers", "numbers for a header", "large",
    ],
)  # fmt: skip
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
    found = read(tmp_path, f"{SCORES}scores = [{names}]\n[weights]\n" + "\n".join(lines))
    assert found.matrix.shape == (MOST_SCORES, MOST_SCORES + 1)


def test_messages_stay_short_whatever_is_in_the_file(tmp_path: Path) -> None:
    many = "".join(f'column_{i} = "{"x" * 500}"\n' for i in range(2_000))
    with pytest.raises(ValueError, match="and 1,992 more problems") as refused:
        read(tmp_path, f"{SCORES}[weights]\n{many}")
    assert len(str(refused.value)) < 4_000
    with pytest.raises(ValueError, match="and 1,992 more: 2 weights") as refused:
        read(tmp_path, f"{SCORES}[weights]\n" + "".join(f"column_{i} = [1, 2]\n" for i in range(2_000)))
    assert len(str(refused.value)) < 500


def test_a_score_may_not_pass_for_another_column() -> None:
    assert scores_must_differ(("s", "t"), ("id", "Calls", "calls")) == ("s", "t"), "columns are the holder's"
    for taken in ("id", "CALLS"):
        with pytest.raises(ValueError, match="choose another name"):
            scores_must_differ(("s", taken), ("id", "calls"))


# Writing one


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_written_is_read_back(tmp_path: Path, data: st.DataObject) -> None:
    characters = st.characters(exclude_categories=["Cs"])
    features = data.draw(st.lists(st.text(characters, max_size=12), min_size=2, max_size=6, unique=True))
    count = data.draw(st.integers(1, 2))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    row = st.lists(finite, min_size=len(features), max_size=len(features)).filter(any)
    matrix = np.array(data.draw(st.lists(row, min_size=count, max_size=count)))
    asked = request_of(
        release="scores", scores=tuple(f"score_{i}" for i in range(count)), epsilon=data.draw(EPSILON),
        weights={name: matrix[:, j].tolist() for j, name in enumerate(features)}, why="é “so”",
        asked_on="2026-11-19", limits=("at least 80 of 100 “people”", "é"),
        leave_out=("0123ab",), learned_from="abcdef", delta=data.draw(st.none() | DELTA),
    )  # fmt: skip
    found = read(tmp_path, asked.text(data.draw(st.text(characters, max_size=20)), "a comment"))
    assert found == asked
    assert found.sha256 == asked.sha256
    np.testing.assert_array_equal(found.matrix, matrix)


EPSILON = st.floats(min_value=1e-300, max_value=1e300)
DELTA = st.floats(min_value=1e-300, max_value=1 - 1e-12)


def test_comments_do_not_change_what_is_asked_for() -> None:
    asked = request_of(features=("calls",), tuned_on="public", page="ab" * 16)
    text = asked.text('made by\nrelease = "scores"', "second")
    assert text.splitlines()[:2] == ['# made by release = "scores"', "# second"]
    assert parse_request(text) == asked
    assert 'release = "rows"' in text
    assert "delta" not in text


def test_a_request_is_known_by_what_it_asks_for() -> None:
    asked = request_of()
    others = [
        request_of(epsilon=np.nextafter(4.0, 5)), request_of(B=0.5), request_of(delta=1e-6),
        request_of(features=("calls",)), request_of(why="because"), request_of(mechanism="gaussian"),
        request_of(leave_out=("abcdef",)), request_of(asked_by="Ministry"), request_of(program="x"),
        request_of(asked_on="2026-11-19"), request_of(limits=("at least 80 of 100",)),
    ]  # fmt: skip
    assert len({asked.sha256, *(other.sha256 for other in others)}) == 1 + len(others)
    assert parse_request("epsilon = 4.0\nB = 0.250\n# comment\n").sha256 == asked.sha256


def test_it_is_told_in_words(tmp_path: Path) -> None:
    asked = request_of(
        release="scores", weights={"calls": [1, 0], "texts": [0, 1]}, scores=("a", "b"), why="as agreed",
        learned_from="abcdef", leave_out=("abcdef",), asked_by="Ministry", delta=1e-7,
        asked_on="2026-11-19", limits=("at least 80 of 100 people",),
    )  # fmt: skip
    key = SigningKey.open(tmp_path / "k.pem")
    told = "\n".join(describe_request(asked.signed(key)))
    for part in (
        "a, b: weighted sums of calls, texts", "B = 0.25, ε = 4, δ: 1e-07", "“as agreed”",
        "asked on: 2026-11-19", "limit: “at least 80 of 100 people”",
        "leave out the people of: abcdef", f"signed with key {key.fingerprint}", asked.sha256,
    ):  # fmt: skip
        assert part in told
    assert "not signed" in describe_request(request_of())


# Signing one


def test_a_signature_is_over_everything_that_is_asked_for(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "official.pem")
    signed = request_of(why="phase 2").signed(key)
    assert signed.signer == key.public
    assert signed.sha256 == request_of(why="phase 2").sha256
    again = parse_request(signed.text("a comment"))
    assert (again, again.signer) == (signed, key.public)
    changes: list[dict[str, Any]] = [
        {"epsilon": 8.0}, {"B": 0.1}, {"delta": 0.1}, {"features": ("calls",)}, {"leave_out": ("abcdef",)},
        {"why": "phase 3"}, {"asked_by": "Somebody"}, {"asked_on": "2026-11-19"},
        {"limits": ("more",)}, {"mechanism": "gaussian"}, {"tuned_on": "public"},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(ValueError, match="it was changed after it was signed; sign it again"):
            _ = signed.model_copy(update=change).signer


@pytest.fixture
def officials(tmp_path: Path) -> tuple[SigningKey, SigningKey]:
    return SigningKey.open(tmp_path / "ministry.pem"), SigningKey.open(tmp_path / "stranger.pem")


def test_a_desk_that_wants_signatures_takes_those_of_pinned_keys_alone(
    tmp_path: Path, officials: tuple[SigningKey, SigningKey]
) -> None:
    ministry, stranger = officials
    table = write_parquet(tmp_path / "in.parquet")
    desk = make_desk(tmp_path, requests={"accept": "signed"}, keys={"ministry": ministry.public})
    asked = request_of(asked_by="Ministry")
    changed = asked.signed(ministry).model_copy(update={"epsilon": 5.0})
    refusals = {
        "the request is not signed": asked,
        "the request is signed by nobody whom \\[requests.keys\\] names": asked.signed(stranger),
        "it was changed after it was signed": changed,
    }
    for said, request in refusals.items():
        with nothing_changes(desk.path / "keys"), pytest.raises(Refused, match=said):
            privatize(table, tmp_path / "out.parquet", desk=desk, request=request)
        assert not (tmp_path / "out.parquet").exists()
    done = privatize(table, tmp_path / "out.parquet", desk=desk, request=asked.signed(ministry))
    assert done.certificate.request.signer == ministry.public
    assert any("signed by ministry" in line for line in done.look.lines)
    with desk.ledger() as ledger:
        assert ledger.release(done.certificate.release).title["signer"] == ministry.public


def test_elsewhere_a_signature_must_fit_too(tmp_path: Path, officials: tuple[SigningKey, SigningKey]) -> None:
    desk = make_desk(tmp_path)
    table = table_of()
    seen = check_release(table, desk=desk, request=request_of().signed(officials[1]))
    assert seen.problems == ()
    assert any("signed by a key without a name here" in line for line in seen.lines)
    changed = request_of().signed(officials[1]).model_copy(update={"epsilon": 5.0})
    (problem,) = check_release(table, desk=desk, request=changed).problems
    assert "it was changed after it was signed" in problem.what
    assert problem.whose == "official"


def test_words_of_whoever_asks_are_quoted(tmp_path: Path) -> None:
    asked = request_of(
        asked_by="Ministry of Aid", program="Novissi", why="this is safe for everybody",
        asked_on="2026-11-19", limits=("nobody is singled out",),
    )  # fmt: skip
    seen = check_release(table_of(), desk=make_desk(tmp_path), request=asked)
    (line,) = (line for line in seen.lines if line.startswith("asked for by Ministry of Aid, for Novissi"))
    assert "on 2026-11-19, because “this is safe for everybody”" in line
    assert "who asks wants, in their words: “nobody is singled out”" in seen.lines
    assert line.endswith(", not signed")


# Whatever comes

PIECES = st.sampled_from(
    ["scores", "weights", "[weights]", "[signature]", "[[", "]", "=", '"s"', "a", ".", "\n", "nan", "1e400",
     "0x1F", "[1, 2]", "{", "}", "true", "'''", '"""', "#", "-", "1979-05-27", "release", "\t", ",",
     "B = 0.25\n", "epsilon = 4\n", 'release = "scores"\n', "override", "features"]
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=40).map(lambda p: "".join(p).encode())))
def test_whatever_is_in_a_file_it_is_read_or_refused_in_words(tmp_path: Path, content: bytes) -> None:
    found = read_or_refused(tmp_path, content)
    assert found is None or (found.weights is None) == (found.release == "rows")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_good_file_with_one_spot_changed_is_read_or_refused_in_words(
    tmp_path: Path, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(GOOD) - 1))
    with_change = GOOD[:place] + data.draw(st.text(max_size=4)) + GOOD[place + data.draw(st.integers(0, 9)) :]
    found = read_or_refused(tmp_path, with_change.encode("utf-8", "surrogatepass"))
    assert found is None or found.weights is None or np.isfinite(found.matrix).all()


def test_features_of_tests_are_plain() -> None:
    assert set(FEATURES).isdisjoint(HOLDERS)


def test_curves_of_many_knots_are_a_request_like_any_other() -> None:
    knots = [0.25 * place for place in range(40)]
    curve = {"knots": knots, "values": [0.5 * at for at in knots]}
    one = {"name": "aid", "additive": {"calls": curve, "texts": curve}, "cut": 1.5}
    asked = make_request(release="decisions", B=2.0, epsilon=4.0, decisions=[one])
    assert parse_request(asked.text()) == asked
    with pytest.raises(ValueError, match="nested too deeply"):  # names nest, also behind a list of numbers
        parse_request(f"x = [1.5, 2.5]\na{'.a' * 40} = 1\n")
