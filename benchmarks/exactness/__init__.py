"""Test whether gate and circuit ever disagree."""
