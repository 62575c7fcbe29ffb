"""Model files: safetensors with a card in the metadata. Loading executes no code."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from sluice.detector.autoencoder import Autoencoder
from sluice.detector.calibration import Calibration, Detector, Framing, TrainingSummary, sealed
from sluice.detector.fusion import Fusion, OrRules
from sluice.detector.model import DetectorKind, Model, Weights
from sluice.detector.physics import Physics
from sluice.detector.registry import SUMMED, detector_names
from sluice.detector.tails import ScoreTail
from sluice.detector.threshold import AlarmThreshold
from sluice.detector.vote import VOTE, VotedModel
from sluice.errors import InputError, ModelFileError
from sluice.files import atomically, parse_json, read_at_most
from sluice.invariants import dump_rules, parse_rules, rules_hash
from sluice.telemetry import Scaler

__all__ = ["Card", "load_detector", "save_detector"]

VERSION = 1
VERSION_WITH_UNITS = 2  # older versions would ignore the resolution and the rules
VERSION_WITH_HISTORY = 3  # older versions know no rules beside a vote and no calibrations
CARD, RULES = "sluice", "rules"
LARGEST, LARGEST_HEADER = 256 << 20, 4 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionCard:
    """How a model is fused with the rules, which stand beside the card in the metadata."""

    rules: str  # their hash
    model_tail: ScoreTail
    rules_tail: ScoreTail

    @classmethod
    def of(cls, fusion: Fusion) -> "FusionCard":
        """Return the card of a fusion."""
        return cls(
            rules=fusion.physics.digest,
            model_tail=fusion.model_tail,
            rules_tail=fusion.rules_tail,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrRulesCard:
    """The rules beside a vote; their threshold is in the vote's calibrations."""

    rules: str  # their hash
    beside: Literal["vote"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The metadata of a model file."""

    version: int
    kind: str
    channels: tuple[str, ...]
    window_rows: int
    stride_s: float
    mean: tuple[float, ...]  # of the scaler, per channel
    spread: tuple[float, ...]
    resolution: tuple[float, ...] = ()  # readings are rounded to it; empty: taken as read
    threshold: AlarmThreshold
    training: TrainingSummary
    fusion: FusionCard | OrRulesCard | None = None
    calibrations: Annotated[
        tuple[Calibration, ...], Field(exclude_if=lambda calibrations: not calibrations)
    ] = ()


_ADAPTER = TypeAdapter(Card)


def save_detector(detector: Detector, path: str | Path) -> None:
    """Write a detector as one safetensors file; the rules that it reads are part of it."""
    path = Path(path)
    framing, scaler, fusion = detector.framing, detector.framing.scaler, detector.fusion
    newer = bool(len(scaler.resolution)) or fusion is not None
    card = Card(
        version=_version(detector),
        kind=str(detector.model.kind),
        channels=scaler.names,
        window_rows=framing.window_rows,
        stride_s=framing.stride_s,
        mean=tuple(scaler.mean.tolist()),
        spread=tuple(scaler.spread.tolist()),
        resolution=tuple(scaler.resolution.tolist()),
        threshold=detector.threshold,
        training=detector.training,
        fusion=_fusion_card(fusion),
        calibrations=detector.calibrations,
    )
    # A file without these parts stays as the first release wrote it.
    absent = None if newer or detector.calibrations else {"resolution", "fusion"}
    metadata = {CARD: _ADAPTER.dump_json(card, exclude=absent).decode()}
    if fusion:
        metadata[RULES] = dump_rules(fusion.physics.rules)
    tensors = {name: np.ascontiguousarray(a) for name, a in detector.model.tensors().items()}
    content = _in_order(save(tensors, metadata=metadata))
    with atomically(path) as draft:
        draft.write_bytes(content)


def _in_order(content: bytes) -> bytes:
    """Return the file with its metadata in order, so that one detector is always one file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if len(header["__metadata__"]) == 1:
        return content
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def _version(detector: Detector) -> int:
    if isinstance(detector.fusion, OrRules) or detector.calibrations:
        return VERSION_WITH_HISTORY
    newer = bool(len(detector.framing.scaler.resolution)) or detector.fusion is not None
    return VERSION_WITH_UNITS if newer else VERSION


def _fusion_card(fusion: Fusion | OrRules | None) -> FusionCard | OrRulesCard | None:
    match fusion:
        case Fusion():
            return FusionCard.of(fusion)
        case OrRules():
            return OrRulesCard(rules=fusion.physics.digest, beside="vote")
        case None:
            return None


def load_detector(path: str | Path) -> Detector:
    """Read a detector; refuse a damaged file, an unknown kind, or a card that does not fit."""
    path = Path(path)
    try:
        return _detector(_read(path))
    except InputError as error:
        raise ModelFileError(f"model file {path} cannot be used: {error}") from None


def _read(path: Path) -> bytes:
    try:
        content = read_at_most(path, LARGEST + 1)
    except OSError as error:
        raise ModelFileError(str(error.strerror)) from None
    if len(content) > LARGEST:
        raise ModelFileError(f"it has more than {LARGEST:,} bytes")
    return content


def _detector(content: bytes) -> Detector:
    header = int.from_bytes(content[:8], "little")
    if header > LARGEST_HEADER:
        raise ModelFileError(
            f"it is not a complete safetensors file (its header would have {header:,} bytes; "
            f"expected at most {LARGEST_HEADER:,})"
        )
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise ModelFileError(f"it is not a complete safetensors file ({error})") from None
    metadata = _metadata(content)
    card = _card(metadata)
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ModelFileError(f"its {name} holds NaN or infinite numbers")
    model = _model(card, tensors)
    return sealed(
        model,
        Framing(scaler=_scaler(card), stride_s=card.stride_s, window_rows=card.window_rows),
        threshold=card.threshold,
        training=card.training,
        fusion=_fusion(card.fusion, metadata, model) if card.fusion else None,
        calibrations=_calibrations(card),
    )


def _calibrations(card: Card) -> tuple[Calibration, ...]:
    """Return the list of calibrations; the last one must be the one in use."""
    if card.calibrations and card.calibrations[-1].threshold != card.threshold:
        raise ModelFileError(
            "its threshold is not that of its last calibration; restore the file from a backup"
        )
    return card.calibrations


def _metadata(content: bytes) -> dict[str, str]:
    # The format is 8 bytes of header length, a JSON header, then the numbers.
    raw = content[8 : 8 + int.from_bytes(content[:8], "little")].decode(errors="replace")
    header = parse_json(raw, "its header", error=ModelFileError)
    metadata: dict[str, str] = header.get("__metadata__", {})
    return metadata


def _fusion(
    card: FusionCard | OrRulesCard, metadata: dict[str, str], model: Model
) -> Fusion | OrRules:
    if RULES not in metadata:
        raise ModelFileError("its rules are missing; train it again")
    rules = parse_rules(metadata[RULES], name="inside the model file")
    if rules_hash(rules) != card.rules:
        raise ModelFileError(
            f"it was calibrated with rules {card.rules[:12]}... and holds rules "
            f"{rules_hash(rules)[:12]}...; train it again"
        )
    if isinstance(card, OrRulesCard):
        limit = model.calibration.rules_threshold if isinstance(model, VotedModel) else None
        if limit is None:
            raise ModelFileError(
                "its rules have no threshold beside the vote; make it again with 'sluice plant "
                "model'"
            )
        return OrRules(physics=Physics(rules=rules), threshold=limit)
    return Fusion(
        physics=Physics(rules=rules), model_tail=card.model_tail, rules_tail=card.rules_tail
    )


def _card(metadata: dict[str, str]) -> Card:
    text = metadata.get(CARD)
    if text is None:
        raise ModelFileError("it has no card; only models saved by Sluice can be loaded")
    try:
        version = parse_json(text, "its card", error=ModelFileError).get("version")
        if version not in (VERSION, VERSION_WITH_UNITS, VERSION_WITH_HISTORY):
            raise ModelFileError(
                f"its card is of version {version!r}; this Sluice reads {VERSION} to "
                f"{VERSION_WITH_HISTORY}"
            )
        return _ADAPTER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelFileError(f"its card is damaged: {where}: {first['msg']}") from None
    except AttributeError:
        raise ModelFileError("its card is not a JSON object") from None


def _model(card: Card, tensors: dict[str, Weights]) -> Model:
    if card.kind == VOTE:
        return VotedModel.from_tensors(tensors)
    if card.kind not in detector_names():
        raise ModelFileError(f"its kind is {card.kind!r}; known are {', '.join(detector_names())}")
    if card.kind == DetectorKind.AUTOENCODER:
        return Autoencoder.from_tensors(tensors)
    return SUMMED[card.kind].model.from_tensors(tensors)


def _scaler(card: Card) -> Scaler:
    counts = {len(card.channels), len(card.mean), len(card.spread), len(set(card.channels))}
    if len(counts) != 1 or len(card.resolution) not in (0, len(card.channels)):
        raise ModelFileError(
            "its card needs one mean and one spread for each channel, one resolution for each or "
            "for none, and each channel once"
        )
    units = (*card.spread, *card.resolution)
    if not all(map(math.isfinite, card.mean)) or not all(0 < unit < math.inf for unit in units):
        raise ModelFileError("its card holds means or spreads that cannot scale a reading")
    return Scaler(
        names=card.channels,
        mean=np.array(card.mean),
        spread=np.array(card.spread),
        resolution=np.array(card.resolution),
    )
