"""Files that are not part of this project, and where they are on this machine, if they are.

Real tables, the paper's source and its authors' outputs have licenses of their own. Whoever has them names
their folders in the environment; without them the tests that need them are skipped, and say so.
"""

import os
from pathlib import Path

import pytest

TABLES, PAPER, AUTHORS = "TARGETDP_REAL_TABLES", "TARGETDP_PAPER", "TARGETDP_AUTHORS"
"""Folders: two real tables, ``paper.tex``, and the data files of the authors' demonstration code."""


def outside(variable: str, name: str) -> Path:
    """A file in the folder that an environment variable names; it need not be there."""
    return Path(os.environ.get(variable, "/nowhere")) / name


def needs(*files: Path) -> pytest.MarkDecorator:
    """Skip tests where files from outside are not at hand."""
    missing = [path.name for path in files if not path.is_file()]
    names = f"{TABLES}, {PAPER} or {AUTHORS}"
    return pytest.mark.skipif(
        bool(missing),
        reason=f"no {', '.join(missing)}: name the folder in {names} (tests/support/outside.py)",
    )


VIETNAM = outside(TABLES, "vietnam_4201x10.parquet")
"""Vietnam Living Standards Survey 1997/98 (R package Ecdat, VietNamH)."""
CREDIT = outside(TABLES, "credit_20788x15.parquet")
"""UCI's default of credit card clients."""
