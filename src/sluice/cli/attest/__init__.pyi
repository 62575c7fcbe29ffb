from .commands import app
from .proofs import peak_mb, prove_into, warn_if_unsafe

__all__ = ["app", "peak_mb", "prove_into", "warn_if_unsafe"]
