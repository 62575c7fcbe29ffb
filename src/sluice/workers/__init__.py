"""Workers take work from a store, one piece at a time each, and put back what came of it."""
