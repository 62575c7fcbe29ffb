"""What the detectors find, and what they cost."""
