from .gridfile import preset_names, read_grid
from .planning import GridPlan, planned
from .running import EngineName, plan_grid, resume_grid, run_grid, run_store
from .sources import Opened, opened
from .work import Work, work_from_json, work_to_json
from .workbench import LabBench, Workbench

__all__ = [
    "EngineName",
    "GridPlan",
    "LabBench",
    "Opened",
    "Work",
    "Workbench",
    "opened",
    "plan_grid",
    "planned",
    "preset_names",
    "read_grid",
    "resume_grid",
    "run_grid",
    "run_store",
    "work_from_json",
    "work_to_json",
]
