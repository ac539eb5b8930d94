"""A release against the request that it answers: what was asked for, no more and no less."""

from collections.abc import Iterator

import numpy as np

from targetdp.mechanisms import LEAST_NOISE, law_of, unit_map
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import Check
from targetdp.release._request import Request
from targetdp.release._terms import is_large

_LEAST = 1 - 1e-9


def request_checks(c: Certificate, request: Request | None) -> Iterator[Check]:
    """Whether a certificate cites a request, and tells of a release that is what was asked for."""
    if request is None:
        return
    same = c.request.sha256 == request.sha256
    cited = "the one that the certificate cites" if same else "another one than the certificate cites"
    yield Check("request", same, cited)
    try:
        signer = request.signer
    except ValueError as error:
        yield Check("who asked", False, str(error))
    else:
        good = signer == c.request.signer
        yield Check("who asked", good, "the same signer" if good else "another signer than is certified")
    wrong = list(_other_than_asked(c, request))
    yield Check("what was asked for", not wrong, "; ".join(wrong) or "was released, no more and no less")


def _other_than_asked(c: Certificate, request: Request) -> Iterator[str]:
    """What was released that was not asked for, in words."""
    if c.kind != request.release:
        yield f"{c.kind} were released, and {request.release} asked for"
    if c.decisions != request.decisions:
        yield "other decisions were taken"
    asked = request.columns
    if asked is not None and {*c.encoding.expanded(asked)} != {*c.encoding.expanded(c.features)}:
        yield "other columns were released"
    elif request.weights is not None and not _same_weights(c, request):
        yield "other weights were used"
    promised = c.guarantee
    # Where scales are paid for, a sum is rounded down.
    if promised.B != request.B or not _LEAST <= promised.epsilon / request.epsilon <= 1:
        asked_for = f"{request.B:.12g} and {request.epsilon:.12g}"
        yield f"B and ε are {promised.B:.12g} and {promised.epsilon:.12g}, not {asked_for}"
    if request.delta is not None and promised.delta > request.delta:
        yield f"δ is {promised.delta:g}, and {request.delta:g} was asked for"
    if request.delta is None and is_large(promised.delta, c.rows):
        yield f"δ is {promised.delta:g}, above 1/rows, and none was asked for"
    if request.mechanism not in {LEAST_NOISE, c.mechanism.name}:
        yield f"the noise is {c.mechanism.name}, and {request.mechanism} was asked for"
    left_out = [[one for one in c.left_out if one.startswith(prefix)] for prefix in request.leave_out]
    if any(len(found) != 1 for found in left_out) or {found[0] for found in left_out} != set(c.left_out):
        yield "people of other releases were left out"
    words = ("scores", "learned_from", "tuned_on")
    yield from (f"{name} is another" for name in words if getattr(c, name) != getattr(request, name))
    said = ("asked_by", "program", "why", "page")
    yield from (f"{name} is another" for name in said if getattr(c.request, name) != getattr(request, name))


def _same_weights(c: Certificate, request: Request) -> bool:
    """Weights are certified divided by their norm."""
    try:
        law = law_of(c.mechanism.law).linear
        asked = unit_map(request.weights_for(c.features), c.guarantee.B)
        return law is not None and np.allclose(np.array(law.weights), asked, rtol=1e-9, atol=1e-12)
    except (ValueError, TypeError, ArithmeticError):
        return False
