"""Fuzzing that follows coverage (atheris): `guided.py READER FILE [libFuzzer's options and folders]`.

FILE is where each input is written for the reader, with the name that it expects. Ends with code 0 when the
time is over, with another one, and a traceback, at the first input that a reader does not take or refuse.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["targetdp", "tomllib", "json"]):
    from support.fuzz_readers import READERS, only_value_errors


@atheris.instrument_func  # type: ignore[untyped-decorator, unused-ignore]
def careless(path: Path) -> None:
    """A reader with a fault behind two branches: who follows coverage finds it, guessing takes long."""
    data = path.read_bytes()
    if data[:1] == b"d" and data[1:2] == b"p":
        raise KeyError("not a ValueError")


def main() -> None:
    """Feed one reader until libFuzzer has enough."""
    name, path, *options = sys.argv[1:]
    read, place = (READERS | {"careless": careless})[name], Path(path)

    def one(data: bytes) -> None:
        place.write_bytes(data)
        only_value_errors(read, place)

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
