"""Benchmarks measure speed and evidence; they are not part of the wheel."""
