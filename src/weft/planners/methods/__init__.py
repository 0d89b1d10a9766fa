"""Weft's own planners, one module each. A module here adds its planner to the table."""
