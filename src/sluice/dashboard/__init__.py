"""The dashboard shows a running federation: its round, its plants, and whether the log holds."""
