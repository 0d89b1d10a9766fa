"""Workloads: training steps as Chakra traces, made up, and lowered to synthesized algorithms."""

from weft.workload.loading import Workload, load_workload
from weft.workload.lowering import Lowering, lower
from weft.workload.transformer import save_transformer
from weft.workload.transformer_model import Transformer

__all__ = ["Lowering", "Transformer", "Workload", "load_workload", "lower", "save_transformer"]
