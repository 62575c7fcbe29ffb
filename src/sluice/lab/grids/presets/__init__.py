"""Grid files that ship with the lab."""
