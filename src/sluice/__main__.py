"""`python -m sluice` is the `sluice` command."""

from sluice.cli import main

if __name__ == "__main__":
    main()
