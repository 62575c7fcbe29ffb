"""Evidence on the vote: attacks on the members of a vote, beside its certificate."""
