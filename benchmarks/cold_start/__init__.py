"""What a plant gets from a federation in its first days: a vote, and borrowed thresholds."""
