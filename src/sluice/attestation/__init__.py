"""Attestation lets a plant prove its verdict without showing its readings."""

from sluice.attestation.poseidon import poseidon

__all__ = ["poseidon"]
