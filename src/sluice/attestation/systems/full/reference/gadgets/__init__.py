"""The gadgets of the reference verifier: groups of columns with the constraints on them."""
