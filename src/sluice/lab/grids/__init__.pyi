from .gridfile import preset_names, read_grid
from .planning import GridPlan, planned
from .sources import Opened, opened
from .work import Work, work_from_json, work_to_json
from .workbench import LabBench, Workbench

__all__ = [
    "GridPlan",
    "LabBench",
    "Opened",
    "Work",
    "Workbench",
    "opened",
    "planned",
    "preset_names",
    "read_grid",
    "work_from_json",
    "work_to_json",
]
