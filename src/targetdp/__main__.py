"""`python -m targetdp` is `targetdp`."""

from targetdp.cli import main

if __name__ == "__main__":
    main()
