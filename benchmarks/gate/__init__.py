"""Evaluation of the gate on honest and fabricated batches."""
