from .local import LocalHands
from .on_ray import RayHands
from .pool import Engine, Task
from .running import Runner

__all__ = ["Engine", "LocalHands", "RayHands", "Runner", "Task"]
