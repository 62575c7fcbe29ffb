"""Openings: the committed polynomials have the claimed values, and are of low degree.

All claims are combined into one word: the sum of (claimed - opened) / (point - place), weighted
with powers of a challenge. If a claim is wrong, that word is far from any polynomial of low degree.
The word is folded, eight places into one, until a short polynomial is left. At each query the
combination is computed from opened rows and followed through every folding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.attestation.systems.full.reference.encoding import BatchOpening, Fri, TreeOpening
from sluice.attestation.systems.full.reference.field import (
    GENERATOR,
    ORDER,
    Ext,
    powers,
    reverse_bits,
    root_of_unity,
    weighted,
)
from sluice.attestation.systems.full.reference.merkle import leaf_hash, verify_openings
from sluice.attestation.systems.full.reference.parameters import (
    LOG_ARITY,
    LOG_BLOWUP,
    LOG_FINAL,
    QUERIES,
    QUERY_WORK,
    SALT,
)
from sluice.attestation.systems.full.reference.rows import total
from sluice.attestation.systems.full.reference.transcript import (
    Transcript,
    bits,
    elements,
    marker,
    message,
    work,
)
from sluice.errors import VerificationError

__all__ = ["Claims", "Matrix", "fold_schedule", "verify_claims"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The claimed values of a matrix's columns, at one point or two."""

    points: tuple[tuple[Ext, tuple[Ext, ...]], ...]

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.points[0][1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The matrices under one commitment."""

    root: bytes
    matrices: tuple[Matrix, ...]


def fold_schedule(log_size: int) -> list[int]:
    """Return the logarithm of how many places each folding takes together."""
    schedule = []
    while log_size > LOG_BLOWUP + LOG_FINAL:
        schedule.append(min(LOG_ARITY, log_size - LOG_BLOWUP - LOG_FINAL))
        log_size -= schedule[-1]
    return schedule


def verify_claims(
    transcript: Transcript, batches: Sequence[Claims], fri: Fri, *, log_size: int
) -> None:
    """Check every claimed value, for words of 2^log_size places."""
    _demand_shape(batches, fri, log_size)
    combining = _observe_claims(transcript, batches)
    folding, queries = _observe_folding(transcript, fri, log_size)
    words = _combined(batches, fri.inputs, combining, queries, log_size)
    for batch, opening in zip(batches, fri.inputs, strict=True):
        leaves = [
            (query, leaf_hash(rows, salts))
            for query, rows, salts in zip(queries, opening.rows, opening.tree.salts, strict=True)
        ]
        verify_openings(batch.root, log_size, leaves, opening.tree.siblings)
    _verify_folding(fri, words, folding, queries, log_size)


def _demand_shape(batches: Sequence[Claims], fri: Fri, log_size: int) -> None:
    """Refuse lists that are not as long as the circuit and the parameters say."""
    schedule = fold_schedule(log_size)
    rounds = (len(fri.roots), len(fri.fold_work), len(fri.folds))
    holds = rounds == (len(schedule),) * 3 and len(fri.inputs) == len(batches)
    holds = holds and len(fri.last) == 1 << LOG_FINAL
    holds = holds and fri.batch_work == 0 and not any(fri.fold_work)  # no work is demanded there
    for batch, opening in zip(batches, fri.inputs, strict=False):
        widths = [matrix.width for matrix in batch.matrices]
        holds = holds and len(opening.rows) == QUERIES
        holds = holds and all([len(row) for row in rows] == widths for rows in opening.rows)
        holds = holds and _salted(opening.tree, len(widths))
    for log_arity, fold in zip(schedule, fri.folds, strict=False):
        others = (1 << log_arity) - 1
        holds = holds and len(fold.siblings) == QUERIES
        holds = holds and all(len(each) == others for each in fold.siblings)
        holds = holds and _salted(fold.tree, 1)
    if not holds:
        raise VerificationError("5.8", "the openings do not have the shape of this circuit")


def _salted(tree: TreeOpening, matrices: int) -> bool:
    return len(tree.salts) == QUERIES and all(
        [len(salt) for salt in salts] == [SALT] * matrices for salts in tree.salts
    )


def _observe_claims(transcript: Transcript, batches: Sequence[Claims]) -> Ext:
    """Observe every claimed value; draw the challenge that combines them."""
    matrices = [matrix for batch in batches for matrix in batch.matrices]
    values = [values for matrix in matrices for _, values in matrix.points]
    steps = [elements("Message", "claimed_evaluations", len(each)) for each in values]
    steps += [elements("Challenge", "alpha"), *marker("low_degree_test")]
    sizes = [len(batches)]
    for batch in batches:
        sizes += [len(batch.matrices), *(len(matrix.points) for matrix in batch.matrices)]
    transcript.begin("p3-fri-pcs", steps, sizes)
    for each in values:
        transcript.observe_extension(each)
    return transcript.challenge()


def _observe_folding(
    transcript: Transcript, fri: Fri, log_size: int
) -> tuple[list[Ext], list[int]]:
    """Observe every folding; draw a challenge for each, and the places that are opened."""
    schedule = fold_schedule(log_size)
    steps = [
        step
        for _ in schedule
        for step in (message("commit_phase_commitment"), elements("Challenge", "fold_challenge"))
    ]
    steps += [elements("Message", "final_poly", 1 << LOG_FINAL), work("query_pow", QUERY_WORK)]
    steps += [bits("query_indices", log_size, QUERIES)]
    transcript.begin("p3-fri", steps, [LOG_BLOWUP, LOG_ARITY, *schedule])
    challenges = []
    for root in fri.roots:
        transcript.observe(root)
        challenges.append(transcript.challenge())
    transcript.observe_extension(fri.last)
    if not transcript.spent_work(QUERY_WORK, fri.query_work):
        raise VerificationError("5.8", "the work before the queries was not done")
    return challenges, [transcript.challenge_bits(log_size) for _ in range(QUERIES)]


def _combined(
    batches: Sequence[Claims],
    inputs: Sequence[BatchOpening],
    challenge: Ext,
    queries: Sequence[int],
    log_size: int,
) -> list[Ext]:
    """Return the combined word at every query, from the opened rows."""
    matrices = [matrix for batch in batches for matrix in batch.matrices]
    count = sum(len(values) for matrix in matrices for _, values in matrix.points)
    weights = powers(challenge, count)
    words = []
    for at, query in enumerate(queries):
        place = GENERATOR * pow(root_of_unity(log_size), reverse_bits(query, log_size), ORDER)
        rows = [row for opening in inputs for row in opening.rows[at]]
        word, used = Ext(0), 0
        for matrix, row in zip(matrices, rows, strict=True):
            for point, values in matrix.points:
                part = weights[used : used + len(row)]
                used += len(row)
                claimed = total(w * value for w, value in zip(part, values, strict=True))
                distance = point - place
                if distance == Ext(0):
                    raise VerificationError("5.8", "a query falls on the opened point")
                word = word + (claimed - weighted(part, row)) * distance.inverse()
        words.append(word)
    return words


def _verify_folding(
    fri: Fri, words: Sequence[Ext], challenges: Sequence[Ext], queries: Sequence[int], log_size: int
) -> None:
    """Follow every query through the foldings to the last polynomial."""
    words, places, log_left = list(words), list(queries), log_size
    for root, fold, challenge, log_arity in zip(
        fri.roots, fri.folds, challenges, fold_schedule(log_size), strict=True
    ):
        log_left -= log_arity
        leaves = []
        for at, siblings in enumerate(fold.siblings):
            group, own = divmod(places[at], 1 << log_arity)
            values = [*siblings[:own], words[at], *siblings[own:]]
            flat = [part for value in values for part in value.coordinates]
            leaves.append((group, leaf_hash([flat], fold.tree.salts[at])))
            words[at] = _folded(values, challenge, group, log_left, log_arity)
            places[at] = group
        verify_openings(root, log_left, leaves, fold.tree.siblings)
    for word, place in zip(words, places, strict=True):
        x = pow(root_of_unity(log_size), reverse_bits(place, log_size), ORDER)
        if word != _horner(fri.last, x):
            raise VerificationError("5.8", "a folded value is not on the last polynomial")


def _folded(
    values: Sequence[Ext], challenge: Ext, group: int, log_groups: int, log_arity: int
) -> Ext:
    """Return the polynomial through a group of values, at the challenge (Lagrange)."""
    start = pow(root_of_unity(log_groups + log_arity), reverse_bits(group, log_groups), ORDER)
    turn = root_of_unity(log_arity)
    places = [
        start * pow(turn, reverse_bits(at, log_arity), ORDER) % ORDER for at in range(len(values))
    ]
    result = Ext(0)
    for own, value in zip(places, values, strict=True):
        basis = Ext(1)  # one at its own place, zero at the others
        for other in places:
            if other != own:
                basis = basis * (challenge - other) * pow(own - other, -1, ORDER)
        result = result + basis * value
    return result


def _horner(coefficients: Sequence[Ext], x: int) -> Ext:
    value = Ext(0)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value
