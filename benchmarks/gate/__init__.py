"""What the gate tells apart."""
