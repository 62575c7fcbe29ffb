"""Attestation lets a plant prove its verdict without showing its readings."""

from sluice.attestation.context import Context, Interval
from sluice.attestation.coordinator import Agreement, Awaiting, Desk, Enrolled
from sluice.attestation.gathering import Attested, Pledging, Revealed, Revealing
from sluice.attestation.keyfolder import KeyFolder
from sluice.attestation.keys import SigningKey
from sluice.attestation.log import Log, read_log
from sluice.attestation.poseidon import poseidon
from sluice.attestation.states import Committed, Pledged, Proven, Registered
from sluice.attestation.system import Circuit, System
from sluice.attestation.systems import circuit_for, find_system
from sluice.attestation.together import Brought, attest_together, verify_together
from sluice.attestation.verifier import Examined, Verification, Verifier

__all__ = [
    "Agreement",
    "Attested",
    "Awaiting",
    "Brought",
    "Circuit",
    "Committed",
    "Context",
    "Desk",
    "Enrolled",
    "Examined",
    "Interval",
    "KeyFolder",
    "Log",
    "Pledged",
    "Pledging",
    "Proven",
    "Registered",
    "Revealed",
    "Revealing",
    "SigningKey",
    "System",
    "Verification",
    "Verifier",
    "attest_together",
    "circuit_for",
    "find_system",
    "poseidon",
    "read_log",
    "verify_together",
]
