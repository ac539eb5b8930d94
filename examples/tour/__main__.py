"""Run the tour: python -m examples.tour [FOLDER]."""

import sys
from pathlib import Path

from examples.tour._tour import tour

if __name__ == "__main__":
    tour(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
