"""The independent judge: whether an algorithm does what it claims."""

from weft.verify.judge import verify
from weft.verify.verdict import Verdict

__all__ = ["Verdict", "verify"]
