"""Grids that come with Sluice."""
