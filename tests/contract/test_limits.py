"""Every limit by name: none can be moved, added or dropped without a change here.

Tests beside each module show what a limit refuses. This table shows that the limit is the one that
was decided: a limit that is twice as large refuses less, and no test with small files would tell.
"""

import dataclasses
import importlib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from tools.refusals import find

ROOT = Path(__file__).parents[2]

STATED = "attestation.systems.full.reference.statement"

LIMITS: dict[str, object] = {
    "admission.acceptance.LEAST_EFFECT": 0.5,
    "admission.acceptance.Acceptance.rules_min": 3,
    "admission.acceptance.Acceptance.coupling_tolerance_max": 0.5,
    "admission.acceptance.Acceptance.balance_tolerance_max": 0.25,
    "admission.acceptance.Acceptance.refused_max": 0.005,
    "admission.acceptance.Acceptance.severe_max": 1.0,
    "admission.acceptance.Acceptance.envelope_max": 0.3,
    "admission.acceptance.Acceptance.anchors_max": 0.01,
    "admission.acceptance.Acceptance.jumps_max": 0.01,
    "admission.acceptance.Acceptance.repeats_max": 0.1,
    "admission.acceptance.Acceptance.liveness_min": 0.0002,
    "admission.acceptance.Acceptance.blocks_max": 1_024,
    "admission.acceptance.Acceptance.looser_than_last": 1.0,
    "admission.acceptance.Acceptance.band_max": 0.5,
    "admission.acceptance.Acceptance.idle_tolerance_max": 0.05,
    "admission.acceptance.Acceptance.noise_max": 1e4,
    "admission.acceptance.Acceptance.noisy_blocks_max": 0.05,
    "admission.acceptance.Acceptance.switches_max": 0.01,
    "admission.acceptance.Acceptance.tie_tolerance_max": 0.25,
    "admission.acceptance.Acceptance.untied_max": 0.35,
    "admission.policy.LARGEST": 1 << 20,
    "admission.policy.PaperPolicy.alpha": 0.01,
    "aggregation.foolsgold.LEAST": 1e-06,
    "attestation.messages.hidden_sums.EPOCHS": 1 << 17,
    "attestation.messages.hidden_sums.HELPER_ENTRIES": 1 << 19,
    "attestation.messages.hidden_sums.MOST_MEMBERS": 1_024,
    "attestation.messages.hidden_sums.RELEASES": 1 << 18,
    "attestation.messages.hidden_sums.RETIREMENTS": 4_096,
    "attestation.messages.hidden_sums.Reason": "MinLen(min_length=1), MaxLen(max_length=200)",
    "attestation.messages.hidden_sums.SUBMISSIONS": 1 << 14,
    "attestation.hidden.elements.ORDER": (1 << 64) - (1 << 32) + 1,
    "attestation.hidden.elements.REPETITIONS": 3,
    "attestation.hidden.elements.WORD": 8,
    "attestation.hidden.shares.KEY_BYTES": 32,
    "attestation.log.entries.LARGEST_ENTRY": 1 << 17,
    "attestation.log.entries.LogTerms.unanswered_max": 3,
    "attestation.log.heads.HEADS": 2_048,
    "attestation.log.ledger.RECENT": 16_384,
    "attestation.log.snapshots.LARGEST_SNAPSHOT": 1 << 30,
    "attestation.log.snapshots._HEADS": 4_096,
    "attestation.messages.documents.LARGEST_COUNT": (1 << 53) - 1,
    "attestation.messages.documents.Count": "Ge(ge=0), Le(le=9007199254740991)",
    "attestation.messages.messages.ENVELOPE": 4_096,
    "attestation.messages.messages.REGISTRATIONS": 8_192,
    "attestation.messages.messages.COMMITS": 8_192,
    "attestation.messages.messages.CHALLENGES": 2_048,
    "attestation.messages.tokens.TAIL_BYTES": 56,
    "attestation.messages.orders.Channel": "MinLen(min_length=1), MaxLen(max_length=200)",
    "attestation.messages.orders.APPROVALS": 16_384,
    "attestation.messages.orders.WAIVERS": 4_096,
    "attestation.messages.orders.SHADOW_ORDERS": 4_096,
    "attestation.messages.orders.ROTATIONS": 4_096,
    "attestation.messages.orders.RECOVERIES": 4_096,
    "attestation.messages.orders.CONSENTS": 4_096,
    "attestation.messages.signing.LARGEST_PRIVATE": 1 << 16,
    "attestation.messages.tokens.TOKENS": 4_096,
    "attestation.protocol.key_folder.PINNED": 1 << 16,
    "attestation.protocol.plant._FORM": 1_024,
    "attestation.systems.full.lanes.MOST_FULL": 40,
    "attestation.systems.full.reference.columns.MOST_DIGITS": 21,
    "attestation.systems.full.reference.field.ORDER": (1 << 64) - (1 << 32) + 1,
    "attestation.systems.full.reference.parameters.CODEWORDS": 3,
    "attestation.systems.full.reference.parameters.EXTENSION": 3,
    "attestation.systems.full.reference.parameters.LEAST_HEIGHT": 256,
    "attestation.systems.full.reference.parameters.LOG_ARITY": 3,
    "attestation.systems.full.reference.parameters.LOG_BLOWUP": 3,
    "attestation.systems.full.reference.parameters.LOG_FINAL": 8,
    "attestation.systems.full.reference.parameters.MOST_HEIGHT": 1 << 17,
    "attestation.systems.full.reference.parameters.MOST_ROWS": 1 << 19,
    "attestation.systems.full.reference.parameters.QUERIES": 53,
    "attestation.systems.full.reference.parameters.QUOTIENTS": 16,
    "attestation.systems.full.reference.parameters.SALT": 2,
    "attestation.systems.full.reference.soundness.MOST_FULL": 40,
    f"{STATED}.Index": "Ge(ge=0), Lt(lt=65536)",
    f"{STATED}.Interval": "MinLen(min_length=2), MaxLen(max_length=2)",
    f"{STATED}.LARGEST_RESIDUAL": 1 << 62,
    f"{STATED}.Length": "Ge(ge=1), Le(le=65536)",
    f"{STATED}.Number": "Ge(ge=0), Lt(lt=18446744073709551616)",
    f"{STATED}.REGISTER_TOP": (1 << 16) - 1,
    f"{STATED}.Sums": "MinLen(min_length=2), MaxLen(max_length=2)",
    f"{STATED}.Tolerance": "Ge(ge=1), Le(le=4611686018427387904)",
    f"{STATED}.Value": "Ge(ge=0), Le(le=65535)",
    f"{STATED}.Weight": "Ge(ge=-9223372036854775808), Lt(lt=9223372036854775808)",
    f"{STATED}.StatedActuator.codes": "Ge(ge=1), Le(le=64)",
    f"{STATED}.StatedCoupling.settle": "Ge(ge=0), Le(le=65536)",
    f"{STATED}.StatedCoupling.standby": "MinLen(min_length=2), MaxLen(max_length=2)",
    f"{STATED}.StatedSpectrum.rows": "Ge(ge=3), Le(le=4096)",
    f"{STATED}.StatedStatistic.channels": "MinLen(min_length=1), MaxLen(max_length=256)",
    f"{STATED}.StatedStatistic.lags": "Ge(ge=1), Le(le=64)",
    f"{STATED}.StatedWindow.rows": "Ge(ge=2), Le(le=65536)",
    "attestation.systems.full.bound.LARGEST_STATISTIC": 1 << 26,
    "attestation.systems.full.bound.MOST_CHANNELS": 256,
    "attestation.systems.full.chaining.LEAST_LOG": 8,
    "attestation.systems.full.chaining.MOST_SEGMENTS": 12,
    "attestation.systems.full.chaining.USUAL_LOG": 12,
    "attestation.systems.full.reference.chain.ROOT": 32,
    "attestation.systems.full.reference.chain.WORD": 8,
    "attestation.systems.full.reference.seams.WORD": 8,
    "attestation.systems.full.system.LARGEST_PROOF": 1 << 23,
    "attestation.systems.full.system.MOST_ROWS": 1 << 19,
    "attestation.systems.full.system.LEAST_ROWS": 2,
    "attestation.systems.full.system.Full.patience_s": 60.0,
    "attestation.systems.sampled.budgets.LEAST_VIOLATIONS": 2,
    "attestation.systems.sampled.budgets.MOST_SILENT": 0.3,
    "attestation.systems.sampled.keys.LARGEST_KEY": 1 << 20,
    "attestation.systems.sampled.rows.BIAS": 1 << 31,
    "attestation.systems.sampled.snarkjs.COORDINATE": 32,
    "attestation.systems.sampled.system.MOST_ROWS": 1 << 17,
    "attestation.systems.unsafe.LARGEST_CODE": (1 << 31) - 1,
    "files.MOST_LEVELS": 64,
    "files.MOST_CONTAINERS": 250_000,
    "files.MOST_TOML_LEVELS": 16,
    "files.MOST_BITS": 64,
    "invariants.budgets.Margins.alpha": 0.01,
    "invariants.budgets.Margins.severe_multiple": 1.0,
    "invariants.budgets.Margins.severe_factor": 1.5,
    "invariants.budgets.Margins.envelope_factor": 1.25,
    "invariants.budgets.Margins.envelope_points": 0.01,
    "invariants.budgets.Margins.anchor_factor": 2.0,
    "invariants.budgets.Margins.anchor_points": 0.001,
    "invariants.budgets.Margins.liveness_share": 0.5,
    "invariants.budgets.Margins.repeat_factor": 2.0,
    "invariants.budgets.Margins.segment_factor": 2.0,
    "invariants.budgets.Margins.block_factor": 2.0,
    "invariants.budgets.Margins.block_points": 0.01,
    "invariants.budgets.Margins.severe_share": 0.0005,
    "invariants.budgets.Margins.switch_factor": 2.0,
    "invariants.budgets.Margins.switch_points": 0.001,
    "invariants.encoding.TOLERANCE": 1 << 30,
    "invariants.encoding.LARGEST_RESIDUAL": 1 << 62,
    "invariants.encoding.LARGEST_SHOWN": 10**300,
    "invariants.encoding.LEAST_BAND": 42,
    "invariants.encoding.LEAST_SUMS": 112,
    "invariants.rulesfile.LARGEST_RULES": 1 << 22,
    "attestation.systems.full.reference.gadgets.moments.WORD": 8,
    "network.helper.client.LARGEST_ANSWER": 1 << 27,
    "attestation.messages.hidden_sums.CARDS": 16_384,
    "attestation.messages.hidden_sums.HelperCard.authority": "MaxLen(max_length=8192)",
    "attestation.messages.hidden_sums.HelperCard.host": (
        "MinLen(min_length=1), MaxLen(max_length=253)"
    ),
    "network.coordinator.filter_process.LONGEST_S": 120.0,
    "network.coordinator.founding.ANSWER_EXTRA": 65_536,
    "network.coordinator.founding.ENTRY_EXTRA": 4_096,
    "network.coordinator.founding.LONGEST_DEADLINE_S": 2_592_000.0,
    "network.coordinator.founding.PROOF_ROOM": 3 << 20,
    "network.coordinator.founding.FederationPlan.overlap_min": 1.0,
    "network.coordinator.founding.FederationPlan.rows_max": 8_192,
    "network.coordinator.founding.FederationPlan.batch_deadline_s": 600.0,
    "network.coordinator.founding.FederationPlan.round_deadline_s": 3600.0,
    "network.coordinator.operations.LONGEST_REASON": 200,
    "network.coordinator.pages.PAGE_BYTES": 1 << 22,
    "network.coordinator.store.BATCH_ASKS": 3,
    "network.plant.disclosure.LEAST_CORRELATION": 0.3,
    "network.plant.disclosure.LONGEST_NAME": 64,
    "network.plant.gain.LEAST_WINDOWS": 200,
    "network.plant.vote_gain.LEAST_WINDOWS": 100,
    "network.statistics.LARGEST_MODEL": 1 << 24,
    "network.terms.FederationTerms.overlap_min": 1.0,
    "network.terms.LARGEST_DOCUMENT": 1 << 24,
    "network.wire.clocks.MOST_AHEAD_S": 5.0,
    "network.wire.clocks.MOST_BEHIND_S": 305.0,
    "network.wire.objects.HEAD_BYTES": 16_384,
    "network.wire.objects.OBJECT_EXTRA": 1_024,
    "network.wire.proxy.LARGEST_CALL": 1 << 16,
    "network.wire.proxy.LARGEST_OBJECT_CALL": 1 << 23,
    "network.wire.questions.LARGEST_TAIL": 1_024,
    "network.wire.refusals.MOST_CALLERS": 1_000,
    "network.wire.superlink.MOST_ASKS": 4,
    "network.wire.superlink.RETURN_S": 120.0,
    "network.wire.wire.LARGEST_MESSAGE": 1 << 25,
    "network.wire.wire.LARGEST_ANSWER": 7 << 20,
    "reports.dashboard.federation_page.MOST_ROUNDS": 50,
    "reports.dashboard.snapshot.PIECE_BYTES": 1 << 22,
    "telemetry.formats.ipal.LONGEST_LINE": 1 << 21,
    "telemetry.formats.ipal.MOST_OPEN": 32,
    "telemetry.formats.plain.MOST_LABELS": 1_000,
    "telemetry.limits.LARGEST_RECORD": 1 << 33,
    "telemetry.limits.FREE_CELLS": 1_000_000,
    "telemetry.limits.CELLS_PER_BYTE": 8,
    "telemetry.limits.MOST_COLUMNS": 8_192,
    "telemetry.parquet.TAIL_BYTES": 8,
    "telemetry.parquet.LARGEST_FOOTER": 1 << 24,
    "telemetry.parquet.MOST_FIELDS": 1_000_000,
    "telemetry.parquet.MOST_LEVELS": 12,
    "telemetry.plantfile.LARGEST": 1 << 20,
    "telemetry.plantfile.MOST_WORDS": 10_000,
    "telemetry.record.LARGEST_READING": 1000000000000000.0,
    "telemetry.roles.MOST_STATES": 6,
    "telemetry.roles.LARGEST_CODE": 9,
    "telemetry.source.LARGEST_COMPANION": 1 << 24,
    "telemetry.source.MOST_FILES": 4_096,
    "telemetry.spreadsheet.HEAD_BYTES": 1 << 21,
    "telemetry.spreadsheet.LARGEST_INDEX": 1 << 20,
    "telemetry.spreadsheet.MOST_STRINGS": 1 << 20,
    "telemetry.spreadsheet.MOST_INSIDE": 10_000,
    "telemetry.spreadsheet.MOST_SHEETS": 64,
    "telemetry.table.FURTHEST_S": 1000000000000.0,
    "telemetry.windows.WINDOW_ROWS": 10,
    "telemetry.workbook.END_BYTES": 22,
    "telemetry.workbook.LOCAL_BYTES": 30,
    "telemetry.workbook.MOST_PARTS": 4_096,
    "telemetry.workbook.ENCRYPTED": 1,
    "telemetry.workbook.LONGEST_TAG": 1 << 20,
    "telemetry.workbook.MOST_OTHER_TAGS": 500_000,
    "telemetry.workbook.FREE_CELLS": 500_000,
    "telemetry.workbook.CELLS_PER_BYTE": 1,
}


def value(limit: str) -> object:
    """Return a limit: a constant, a field's default, a constraint of a type or of a document."""
    module, _, name = limit.rpartition(".")
    if module.rpartition(".")[2][0].isupper():
        module, _, class_ = module.rpartition(".")
        owner = getattr(importlib.import_module(f"sluice.{module}"), class_)
        field = next(field for field in dataclasses.fields(owner) if field.name == name)
        if field.default is dataclasses.MISSING:
            return constraints(get_type_hints(owner, include_extras=True)[name])
        return field.default
    found = getattr(importlib.import_module(f"sluice.{module}"), name)
    if hasattr(found, "__metadata__"):
        return constraints(found)
    return getattr(found, "largest", found)


def constraints(annotated: Any) -> str:
    """Return what a type demands of its values."""
    if not hasattr(annotated, "__metadata__"):
        return ", ".join(constraints(inner) for inner in get_args(annotated))
    demanded = annotated.__metadata__[0]
    return ", ".join(map(repr, getattr(demanded, "metadata", demanded)))


def test_the_table_names_every_limit_that_is_read_on_import() -> None:
    """Limits are what `make mutants` moves."""
    places = {
        (mutant.path.removeprefix("src/sluice/").removesuffix(".py").replace("/", "."), mutant)
        for mutant in find(ROOT)
        if not mutant.runs
    }
    names = {
        ".".join(part for part in (module, mutant.function, mutant.name) if part)
        for module, mutant in places
    }
    unnamed = sorted(names - LIMITS.keys())
    assert not unnamed, "decide on these limits, test what they refuse, and add them to LIMITS"


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_the_one_that_was_decided(limit: str) -> None:
    assert value(limit) == LIMITS[limit]
