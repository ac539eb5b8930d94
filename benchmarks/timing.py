"""Two or more ways to do a thing, timed in turns, so that a noisy machine is noisy for all of them.

The clock is the calling thread's CPU time. On a busy machine short calls slip through between the neighbors'
work while long ones cannot, so that wall times would flatter whichever side is fast.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

Call = Callable[[], object]
Say = Callable[[str], None]
CLOCK, WALL = time.thread_time, time.perf_counter


@dataclass(frozen=True)
class Ratio:
    """How much longer one side took than another: best against best, and the range over single rounds."""

    best: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return figure(self.best)
        return f"{figure(self.best)} ({figure(self.lowest)} to {figure(self.highest)})"


@dataclass(frozen=True)
class Times:
    """Seconds of every side: the best call of each round."""

    rounds: dict[str, list[float]]

    def best(self, side: str) -> float:
        """The best call of all."""
        return min(self.rounds[side])

    def ratio(self, side: str, base: str) -> Ratio:
        """How many times as long as ``base`` a side took."""
        single = [own / other for own, other in zip(self.rounds[side], self.rounds[base], strict=True)]
        return Ratio(self.best(side) / self.best(base), min(single), max(single))


def in_turns(
    sides: Mapping[str, Call],
    *,
    rounds: int,
    seconds: float,
    say: Say,
    cold: Collection[str] = (),
    clock: Callable[[], float] = CLOCK,
) -> Times:
    """Time the sides one after the other, round after round.

    In each round every side is called until ``seconds`` are used up, at least twice: the first call after
    another side may pay for memory that the system took back meanwhile. Every side is called once before
    the clock runs, which compiles its kernels. ``cold`` sides have no kernels and take seconds, so that
    neither matters: one call a round.
    """
    for name, call in sides.items():
        if name not in cold:
            say(f"{name}: warming up")
            call()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1, rounds + 1):
        for name, call in sides.items():
            say(f"{name}: round {number} of {rounds}")
            times[name].append(best_call(call, seconds, calls=1 if name in cold else 2, clock=clock))
    return Times(times)


def best_call(call: Call, seconds: float, *, calls: int = 2, clock: Callable[[], float] = CLOCK) -> float:
    """Time a call until ``seconds`` are used up and at least so many ``calls`` were made; keep the best."""
    best, made, end = float("inf"), 0, time.perf_counter() + seconds
    while True:
        start = clock()
        call()
        best, made = min(best, clock() - start), made + 1
        if made >= calls and time.perf_counter() >= end:
            return best


def figure(number: float) -> str:
    """A number with three digits that mean something: 1,234 or 12.3 or 0.0123."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.3g}"
