"""Whether the two verifiers of `full` proofs ever disagree."""
