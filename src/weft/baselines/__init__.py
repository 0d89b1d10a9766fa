"""Classical algorithms, as producers of the same object: what synthesis is measured against."""

from weft.baselines.direct import direct

__all__ = ["direct"]
