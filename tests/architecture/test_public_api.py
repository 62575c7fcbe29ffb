"""The public names: a change of this list is a change that users see."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sluice
import sluice.lab
from tools import reference

SOURCE = Path(__file__).parents[2] / "src" / "sluice"
RUNTIME = [
    "Acceptance",
    "Channel",
    "Circuit",
    "Committed",
    "Decision",
    "Descent",
    "DetectionQuality",
    "DetectionReport",
    "Detector",
    "DetectorKind",
    "Federated",
    "FederationSettings",
    "FileLayout",
    "Fill",
    "Finding",
    "Format",
    "Gate",
    "HardenedPolicy",
    "InputError",
    "Invariant",
    "KeyFolder",
    "Label",
    "Log",
    "Mined",
    "Objection",
    "ObjectionKind",
    "Outcome",
    "PaperPolicy",
    "PlantFile",
    "Policy",
    "Profile",
    "Proven",
    "RULES",
    "Reason",
    "ReasonKind",
    "Record",
    "RefusedError",
    "Role",
    "Rule",
    "RuleSet",
    "Run",
    "Scored",
    "SluiceError",
    "SummedDetector",
    "System",
    "Update",
    "Verdict",
    "Verification",
    "VerificationError",
    "accept",
    "commit",
    "detection_report",
    "evaluate",
    "federate",
    "find_system",
    "judge",
    "layout_for",
    "load_detector",
    "load_rules",
    "mine",
    "mine_record",
    "parse_policy",
    "parse_rules",
    "policy_hash",
    "prove",
    "prove_into",
    "read_log",
    "read_plant_file",
    "read_policy",
    "read_record",
    "rules_hash",
    "save_detector",
    "save_rules",
    "score",
    "seal_rules",
    "summarise",
    "train",
    "verify",
    "write",
    "write_plant_file",
    "write_policy",
    "write_proof",
]
LAB = [
    "Ablation",
    "CellResult",
    "Contributions",
    "Counts",
    "Coverage",
    "DATA_ATTACKS",
    "DataAttack",
    "GridPlan",
    "MODES",
    "Means",
    "NamedGate",
    "PLANTS",
    "POISONS",
    "Plant",
    "Projection",
    "ResultStore",
    "SamplingTable",
    "Scenario",
    "Score",
    "SeparationTable",
    "Setup",
    "Trial",
    "UPDATE_ATTACKS",
    "UpdateAttack",
    "ablation",
    "attack",
    "coverage",
    "expert_rules",
    "export",
    "plan_grid",
    "project",
    "resume_grid",
    "run_cell",
    "run_grid",
    "sampling",
    "scenario",
    "separation",
    "simulate",
    "stored_cells",
]


def test_the_public_names_are_these() -> None:
    assert sorted(sluice.__all__) == sorted(RUNTIME)
    assert sorted(sluice.lab.__all__) == sorted(LAB)


@pytest.mark.parametrize("module", [sluice, sluice.lab], ids=lambda module: module.__name__)
def test_every_public_name_is_there_and_documented(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]
        member = getattr(module, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert inspect.getdoc(member), name


def test_stub_and_runtime_agree_in_every_package() -> None:
    for stub in SOURCE.rglob("__init__.pyi"):
        tree = ast.parse(stub.read_text(encoding="utf-8"))
        imported = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
        (listed,) = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        )
        assert sorted(imported) == sorted(listed), stub


def test_importing_sluice_loads_nothing_heavy() -> None:
    probe = (
        "import sys, sluice; sluice.__version__; "
        "print([m for m in ('numpy', 'polars', 'jax', 'scipy', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_reference_pages_are_up_to_date() -> None:
    for name, text in (("api.md", reference.api_page()), ("cli.md", reference.cli_page())):
        page = reference.REFERENCE / name
        assert page.read_text(encoding="utf-8") == text, f"{name}: run 'make reference'"
