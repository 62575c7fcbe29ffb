"""Whether gate and circuit ever disagree."""
