"""The paper's poisoning experiment on two plants."""
