"""A graph record for human eyes: as readable code (`code`) and as a drawing (`svg`)."""

from warehouse.render.code import code
from warehouse.render.svg import svg

__all__ = ["code", "svg"]
