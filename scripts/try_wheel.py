"""Install a built wheel into an empty environment and go through it as a newcomer: try_wheel.py WHEEL.

Everything happens in a temporary folder: nothing of this project's tree, of its environment or of the user's
settings is seen. `make wheel` builds the wheel and calls this.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

NUMBERS = (
    "night_calls,weekday_text_entropy,contacts,top_up_total,international_calls,days_active,incoming_share,"
    "mean_call_seconds,share_calls_in_lome,share_calls_in_savanes,consumption"
)
STEPS = (
    "--help",
    "--version",
    "plan --accuracy 0.99 --epsilon 1 --delta 1e-4",
    "example togo --rows 1000 --out people.csv --program program.toml",
    "example togo --rows 1000 --seed 2 --out others.csv",
    f"scales others.csv --id id --features {NUMBERS} --source public --reason others --out scales.toml",
    "init people.csv --scales scales.toml",
    "privatize people.csv private.parquet --B 0.25 --epsilon 4 --yes",
    "verify private.parquet --desk desk",
    "status",
    "attack people.csv private.parquet --id id --attacks singling_out,distinguishing",
    "tradeoff program.toml --quick --simulations 1 --out results",
    "report results --out report.html",
)
MADE = ("private.parquet", "private.parquet.certificate.json", "results/run.json", "report.html")
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TARGETDP_KEY", "TARGETDP_DESK", "XDG_CONFIG_HOME")
"""What would let a part of another installation, or of a user's settings, into the trial."""


def try_wheel(wheel: Path, extras: str = "report") -> None:
    """Stops with the first command that fails, and with its words."""
    with tempfile.TemporaryDirectory(prefix="targetdp-wheel-") as scratch:
        folder = Path(scratch)
        venv.create(folder / "environment", with_pip=True)
        binaries = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        home = {"HOME": scratch, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        # The package index may be named in the user's pip.conf, which another HOME would hide.
        own = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        requirement = f"{wheel.resolve()}[{extras}]" if extras else str(wheel.resolve())
        _run([str(binaries / "python"), "-m", "pip", "install", "--quiet", requirement], folder, own)
        for step in STEPS:
            _run([str(binaries / "targetdp"), *step.split()], folder, own | home)
        missing = [name for name in MADE if not (folder / name).stat().st_size]
        if missing:
            raise SystemExit(f"empty: {', '.join(missing)}")


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    sys.stderr.write(f"$ {' '.join([Path(command[0]).name, *command[1:]])}\n")
    done = subprocess.run(  # noqa: S603 (our own commands)
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    try_wheel(Path(sys.argv[1]))
    sys.stderr.write("the wheel installs into an empty environment and works there\n")
