from .commands import app
from .proofs import peak_mb, warn_if_unsafe

__all__ = ["app", "peak_mb", "warn_if_unsafe"]
