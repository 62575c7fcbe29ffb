from .attacks import AttackKind
from .design import ExactRelation, Site, Term, exact_relations
from .plant import simulate

__all__ = ["AttackKind", "ExactRelation", "Site", "Term", "exact_relations", "simulate"]
