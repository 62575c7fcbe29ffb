"""Circomlib-compatible Poseidon over BN254, computed by the Rust core."""

from collections.abc import Sequence

from sluice import _attest
from sluice.errors import SettingError

__all__ = ["poseidon"]


def poseidon(inputs: Sequence[int]) -> int:
    """Hash one to sixteen field elements to one."""
    try:
        return int(_attest.poseidon_hash([str(element) for element in inputs]))
    except ValueError as refused:
        raise SettingError(str(refused)) from None
