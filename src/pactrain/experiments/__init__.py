"""Many runs: plans, the runner that carries them out, and the store of their results."""

from pactrain.experiments.plan import Outcome, Run
from pactrain.experiments.runner import carry_out
from pactrain.experiments.store import Store

__all__ = ["Outcome", "Run", "Store", "carry_out"]
