"""A request in words, for whoever decides about it: what is asked for, by whom, when, why."""

from targetdp._files import one_line
from targetdp.release._decision._asked import describe_decision
from targetdp.release._request import Request
from targetdp.release._trust._keys import fingerprint_of


def describe_request(request: Request) -> list[str]:
    """What a request asks for, in words."""
    what = "all features" if request.features is None else ", ".join(request.features)
    if request.weights is not None:
        what = f"{', '.join(request.scores)}: weighted sums of {', '.join(request.weights)}"
    delta = "that of the desk" if request.delta is None else f"{request.delta:g}"
    if request.decisions:
        what, delta = ", ".join(request.released), "0"
    lines = [
        f"release: {request.release} ({what})",
        f"promise: B = {request.B:g}, ε = {request.epsilon:g}, δ: {delta}",
        *(
            map(describe_decision, request.decisions)
            if request.decisions
            else [f"noise: {request.mechanism}"]
        ),
    ]
    said = (
        ("about", "a labelled sample only: give a table of these people" if request.sample_only else None),
        ("learned from release", request.learned_from),
        ("leave out the people of", ", ".join(request.leave_out) or None),
        ("setting chosen on data that are", request.tuned_on),
        ("program", request.program),
        ("asked by", request.asked_by),
        ("asked on", request.asked_on),
        ("why", None if request.why is None else f"“{request.why}”"),
        *(("limit", f"“{limit}”") for limit in request.limits),
        ("page", request.page),
    )
    lines += [f"{name}: {value}" for name, value in said if value is not None]
    signer = request.signer
    lines.append("not signed" if signer is None else f"signed with key {fingerprint_of(signer)}")
    return [*map(one_line, lines), f"SHA-256 {request.sha256}"]
