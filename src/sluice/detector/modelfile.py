"""Model files: safetensors with a card in the metadata. Loading executes no code."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from sluice.detector.autoencoder import Autoencoder
from sluice.detector.calibration import Detector, Framing, TrainingSummary, sealed
from sluice.detector.model import DetectorKind, Model, Weights
from sluice.detector.registry import SUMMED, detector_names
from sluice.detector.threshold import AlarmThreshold
from sluice.errors import InputError, ModelFileError
from sluice.files import atomically, parse_json, read_at_most
from sluice.telemetry import Scaler

__all__ = ["Card", "load_detector", "save_detector"]

VERSION = 1
CARD = "sluice"
LARGEST, LARGEST_HEADER = 256 << 20, 4 << 20  # bytes


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
    threshold: AlarmThreshold
    training: TrainingSummary


_ADAPTER = TypeAdapter(Card)


def save_detector(detector: Detector, path: str | Path) -> None:
    """Write a detector as one safetensors file."""
    path = Path(path)
    framing, scaler = detector.framing, detector.framing.scaler
    card = Card(
        version=VERSION,
        kind=str(detector.model.kind),
        channels=scaler.names,
        window_rows=framing.window_rows,
        stride_s=framing.stride_s,
        mean=tuple(scaler.mean.tolist()),
        spread=tuple(scaler.spread.tolist()),
        threshold=detector.threshold,
        training=detector.training,
    )
    tensors = {name: np.ascontiguousarray(a) for name, a in detector.model.tensors().items()}
    content = save(tensors, metadata={CARD: _ADAPTER.dump_json(card).decode()})
    with atomically(path) as draft:
        draft.write_bytes(content)


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
    card = _card(content)
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ModelFileError(f"its {name} holds NaN or infinite numbers")
    return sealed(
        _model(card, tensors),
        Framing(scaler=_scaler(card), stride_s=card.stride_s, window_rows=card.window_rows),
        threshold=card.threshold,
        training=card.training,
    )


def _card(content: bytes) -> Card:
    # The format is 8 bytes of header length, a JSON header, then the numbers.
    raw = content[8 : 8 + int.from_bytes(content[:8], "little")].decode(errors="replace")
    header = parse_json(raw, "its header", error=ModelFileError)
    text = header.get("__metadata__", {}).get(CARD)
    if text is None:
        raise ModelFileError("it has no card; only models saved by Sluice can be loaded")
    try:
        version = parse_json(text, "its card", error=ModelFileError).get("version")
        if version != VERSION:
            raise ModelFileError(f"its card is of version {version!r}; this Sluice reads {VERSION}")
        return _ADAPTER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelFileError(f"its card is damaged: {where}: {first['msg']}") from None
    except AttributeError:
        raise ModelFileError("its card is not a JSON object") from None


def _model(card: Card, tensors: dict[str, Weights]) -> Model:
    if card.kind not in detector_names():
        raise ModelFileError(f"its kind is {card.kind!r}; known are {', '.join(detector_names())}")
    if card.kind == DetectorKind.AUTOENCODER:
        return Autoencoder.from_tensors(tensors)
    return SUMMED[card.kind].model.from_tensors(tensors)


def _scaler(card: Card) -> Scaler:
    counts = {len(card.channels), len(card.mean), len(card.spread), len(set(card.channels))}
    if len(counts) != 1:
        raise ModelFileError(
            "its card needs one mean and one spread for each channel, and each channel once"
        )
    if not all(map(math.isfinite, card.mean)) or not all(0 < s < math.inf for s in card.spread):
        raise ModelFileError("its card holds means or spreads that cannot scale a reading")
    return Scaler(names=card.channels, mean=np.array(card.mean), spread=np.array(card.spread))
