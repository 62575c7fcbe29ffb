"""The folder behind `--keys`: the circuit that plant and coordinator have agreed on.

    keys/circuit.json          system, identity, parameters; only proofs of this circuit verify
    keys/rules.json            the rules and
    keys/policy.toml           the policy it is derived from
    keys/private/client.key    the plant's signing key, mode 0600; never leaves the plant

Everything except `private` is public. `full` has no trusted set-up, so nothing else is secret;
`sampled` has keys of its own (systems/sampled/keys.py).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict

from sluice.admission import Policy, policy_hash, read_policy, write_policy
from sluice.attestation.messages import STRICT, Count, Form, Hex32, Name, OptionalName, SigningKey
from sluice.attestation.systems import Circuit, System, SystemName, circuit_for, find_system
from sluice.attestation.systems.sampled import VERIFYING, open_sampled
from sluice.errors import DocumentError, SettingError
from sluice.files import atomically, private_folder, public_folder, read_bounded
from sluice.invariants import RuleSet, load_rules, rules_hash, save_rules

__all__ = ["KeyFolder", "Pinned"]

CIRCUIT, RULES, POLICY = "circuit.json", "rules.json", "policy.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The content of circuit.json: the agreed circuit, by its hashes."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    system: Name
    circuit: Hex32
    parameters: dict[Name, Count]
    rows_max: Count
    proven_bits: Count
    columns: Count
    constraints: Count
    rules: Hex32
    policy: Hex32
    statistic: OptionalName = None  # the sums of the rows that proofs are bound to

    @classmethod
    def of(cls, circuit: Circuit) -> "Pinned":
        """Pin a circuit."""
        return cls(
            system=circuit.system,
            circuit=circuit.identity,
            parameters=dict(circuit.parameters),
            rows_max=circuit.rows_max,
            proven_bits=circuit.proven_bits,
            columns=circuit.columns,
            constraints=circuit.constraints,
            rules=rules_hash(circuit.rules),
            policy=policy_hash(circuit.policy),
            statistic=None if circuit.statistic is None else str(circuit.statistic),
        )

    def names(self, circuit: Circuit) -> bool:
        """Whether this pins the circuit: compares everything that decides which proofs verify."""
        derived = Pinned.of(circuit)
        return (
            self.system == derived.system
            and self.circuit == derived.circuit
            and self.parameters == derived.parameters
            and self.rows_max == derived.rows_max
            and self.rules == derived.rules
            and self.policy == derived.policy
            and self.statistic == derived.statistic
        )


PINNED: Form[Pinned] = Form.of(Pinned, "circuit file", largest=65_536)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFolder:
    """A key folder: the pinned circuit, and the circuit derived from its rules and policy."""

    path: Path
    pinned: Pinned
    system: System
    circuit: Circuit

    @classmethod
    def create(
        cls, path: str | Path, system: System, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> "KeyFolder":
        """Derive a circuit and write the public part; another circuit is not overwritten."""
        path = Path(path)
        circuit = circuit_for(system, rules, policy, rows_max=rows_max)
        pinned = Pinned.of(circuit)
        circuit_file = path / CIRCUIT
        if circuit_file.exists() and circuit_file.read_bytes() != PINNED.write(pinned):
            raise SettingError(f"{path} holds another circuit; choose an empty folder")
        public_folder(path)
        save_rules(rules, path / RULES)
        write_policy(policy, path / POLICY)
        with atomically(circuit_file) as draft:
            draft.write_bytes(PINNED.write(pinned))
        return cls(path=path, pinned=pinned, system=system, circuit=circuit)

    @classmethod
    def open(cls, path: str | Path) -> "KeyFolder":
        """Read the public part and derive the circuit again from rules and policy."""
        path = Path(path)
        if not (path / CIRCUIT).exists():
            raise SettingError(
                f"{path} is not a key folder (it has no {CIRCUIT}); make one with "
                "'sluice attest setup'"
            )
        raw = read_bounded(path / CIRCUIT, "circuit file", largest=PINNED.largest)
        pinned = PINNED.read(raw)
        rules, policy = load_rules(path / RULES), read_policy(str(path / POLICY))
        if (rules_hash(rules), policy_hash(policy)) != (pinned.rules, pinned.policy):
            raise DocumentError(
                f"{path}: {CIRCUIT} is for other rules or another policy than those beside it; run "
                "'sluice attest setup' into an empty folder"
            )
        system = _system(path, pinned)
        circuit = circuit_for(system, rules, policy, rows_max=pinned.rows_max)
        return cls(path=path, pinned=pinned, system=system, circuit=circuit)

    def demand_same_circuit(self) -> None:
        """Raise a `DocumentError` if this version derives another circuit than the pinned one."""
        if not self.pinned.names(self.circuit):
            raise DocumentError(
                f"{self.path / CIRCUIT} pins circuit {self.pinned.circuit[:12]}..., this version "
                f"of Sluice derives {self.circuit.identity[:12]}...; run 'sluice attest setup' "
                "into an empty folder"
            )

    @property
    def public_bytes(self) -> int:
        """The number of bytes that a verifier needs."""
        names = (CIRCUIT, RULES, POLICY, VERIFYING)
        files = (self.path / name for name in names)
        return sum(file.stat().st_size for file in files if file.exists())

    def client_key(self) -> SigningKey:
        """Return the plant's signing key, which its first commitment created."""
        return SigningKey.load(self._key_path)

    def ensure_client_key(self) -> SigningKey:
        """Return the plant's signing key; the first time, draw it and write it with mode 0600."""
        if self._key_path.exists():
            return self.client_key()
        private_folder(self._key_path.parent)
        key = SigningKey.generate()
        try:
            key.save(self._key_path)
        except SettingError:
            if not self._key_path.exists():
                raise
            return self.client_key()  # another process was faster
        return key

    def following_key(self) -> SigningKey:
        """Return the key that will replace the plant's key; the first time, draw it."""
        path = self._following_path
        if not path.exists():
            SigningKey.generate().save(path)
        return SigningKey.load(path)

    def adopt(self, public: str) -> SigningKey | None:
        """Use the following key from now on if it is the one named; return it then."""
        path = self._following_path
        if not path.exists():
            return None
        key = SigningKey.load(path)
        if key.public != public:
            return None
        path.replace(self._key_path)
        return key

    @property
    def _following_path(self) -> Path:
        return self._key_path.with_name("client.next.key")

    @property
    def _key_path(self) -> Path:
        return self.path / "private" / "client.key"


def _system(path: Path, pinned: Pinned) -> System:
    if pinned.system == SystemName.SAMPLED:
        return open_sampled(path, pinned.parameters)
    # The user who made the folder chose this system by name.
    return find_system(pinned.system, reveal_rows=True, statistic=pinned.statistic)
