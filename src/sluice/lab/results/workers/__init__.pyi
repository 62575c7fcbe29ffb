from .local import LocalPool
from .on_ray import RayPool
from .pool import Engine, WorkerTask
from .running import Runner, Silent, Watcher

__all__ = ["Engine", "LocalPool", "RayPool", "Runner", "Silent", "Watcher", "WorkerTask"]
