"""Workloads: training steps as Chakra traces, made up, and lowered to synthesized algorithms."""

from weft.workload.lowering import Lowering, lower
from weft.workload.model import Transformer
from weft.workload.traces import Workload, load_workload
from weft.workload.transformer import save_transformer

__all__ = ["Lowering", "Transformer", "Workload", "load_workload", "lower", "save_transformer"]
