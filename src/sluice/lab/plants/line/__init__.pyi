from .attacks import LineAttackKind
from .design import ExactRelation, LineDesign, LineTerm, exact_relations
from .plant import simulate

__all__ = [
    "ExactRelation",
    "LineAttackKind",
    "LineDesign",
    "LineTerm",
    "exact_relations",
    "simulate",
]
