from .reference import verify_again
from .statement import Statement, derive
from .system import Full
from .witness import Witness

__all__ = ["Full", "Statement", "Witness", "derive", "verify_again"]
