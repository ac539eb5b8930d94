"""How far a row walks: the files of the package that touch it between being read and being written."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import targetdp
from support.release import make_desk, write_parquet
from targetdp.release import make_request, privatize
from targetdp.release._engine._local import LocalEngine

MOST = 25
ROOT = Path(targetdp.__file__).parent


def test_a_row_walks_through_few_files(tmp_path: Path) -> None:
    """Counted are the files whose functions run while rows are looked at and get their noise."""
    source, desk = write_parquet(tmp_path / "in.parquet"), make_desk(tmp_path)
    touched: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (path := Path(frame.f_code.co_filename)).is_relative_to(ROOT):
            touched.add(str(path.relative_to(ROOT)))

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            threading.setprofile(note)
            sys.setprofile(note)
            try:
                return work(*given)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)

        return run

    with (
        mock.patch.object(LocalEngine, "inspect", watched(LocalEngine.inspect)),
        mock.patch.object(LocalEngine, "write", watched(LocalEngine.write)),
    ):
        privatize(source, tmp_path / "out.parquet", desk=desk, request=make_request(B=0.25, epsilon=4))
    assert "table/_source.py" in touched
    assert "noise/_sampler.py" in touched
    assert len(touched) <= MOST, sorted(touched)
