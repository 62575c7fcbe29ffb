"""Cost of proofs, beside stock circom and snarkjs."""
