from .command import watch

__all__ = ["watch"]
