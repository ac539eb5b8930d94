"""Run the tour: python -m targetdp.demo [FOLDER]."""

import sys
from pathlib import Path

from targetdp.demo.tour import tour

if __name__ == "__main__":
    tour(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
