"""Every attack at the gate: who is admitted, how much is planted, and what it does to detectors."""
