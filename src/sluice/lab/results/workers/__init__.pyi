from .local import LocalPool
from .on_ray import RayPool
from .pool import Engine, WorkerTask
from .running import Runner

__all__ = ["Engine", "LocalPool", "RayPool", "Runner", "WorkerTask"]
