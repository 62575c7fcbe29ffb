"""The projection of equation 5: the nearest record that obeys the rules, certified."""

from sluice.attacks.projection.attack import Projected, project
from sluice.attacks.projection.certificate import Certificate
from sluice.attacks.projection.outcome import Conflict, Projection

__all__ = ["Certificate", "Conflict", "Projected", "Projection", "project"]
