"""Metrics of a run: one JSON object per update, and the table of their names.

| name | meaning |
| --- | --- |
| `stage`, `update`, `step` | stage name, update within it, update over all stages |
| `rollout/success` | won / played, sampled, on training tasks |
| `rollout/return_mean` | mean undiscounted return |
| `rollout/turns_per_episode`, `rollout/tokens_per_turn` | lengths |
| `rollout/valid_share` | share of commands that the environment understood and could carry out |
| `rollout/repetition` | share of action tokens equal to the token before |
| `outcome/*` | episodes by how they ended |
| `episodes/*`, `tokens/*` | ledger of the update: asked, played, dropped by reason, trained |
| `pool/started`, `pool/died`, `pool/killed`, `pool/recycled` | worker processes since the last row, spare ones too |
| `pool/deadline_misses`, `pool/late_replies` | calls that took too long; replies that nobody waited for any more |
| `loss/policy`, `loss/value`, `loss/kl`, `loss/sft` | losses, averaged as the recipe says |
| `policy/entropy`, `policy/clip_share`, `policy/approx_kl`, `policy/grad_norm` | nats; share; nats; before clipping |
| `policy/dual_clip_share`, `policy/mismatch_weight` | share; mean weight of kept action tokens, where it is used |
| `policy/steps` | optimizer steps of the update |
| `policy/canary_gap` | abs(trainer - engine) log-prob, largest of some tokens, after the update |
| `policy/sampler_gap_mean`, `policy/sampler_gap_max` | abs(trainer - sampler) log-prob, before the first step |
| `kl/k1`, `kl/k3` | to the reference, in nats per action token |
| `critic/explained_variance`, `critic/grad_norm` | 1 - var(target - value) / var(target); before clipping |
| `episodes/bootstrap_clipped` | endings whose following prompt did not fit the model |
| `advantage/mean`, `advantage/std` | over kept turns (action tokens with credit by token), after whitening |
| `optim/lr_share` | learning rate as a share of its height |
| `validation/greedy_success`, `validation/sampled_success` | on the validation tasks |
| `time/rollout_s`, `time/update_s`, `time/total_s` | wall seconds |
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

MetricValue = float | int | str


class MetricsLog:
    """Appends rows to `metrics.jsonl`; a resumed run drops the rows after its checkpoint.

    Args:
        on_row: called with each row as it is written, for the terminal.
    """

    def __init__(
        self, path: Path, *, on_row: Callable[[Mapping[str, MetricValue]], None] | None = None
    ) -> None:
        self.path = path
        self.on_row = on_row

    def write(self, row: Mapping[str, MetricValue]) -> None:
        """Writes one row; not-finite numbers are kept as text, since JSON has none."""
        plain = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain) + "\n")
        if self.on_row is not None:
            self.on_row(row)

    def keep_until(self, step: int) -> None:
        """Drops rows of later steps, which will be written again, and half-written ones."""
        if not self.path.exists():
            return
        kept = [line for line in self.path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step]
        beside = self.path.with_suffix(".tmp")
        beside.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        os.replace(beside, self.path)


def read_metrics(path: Path) -> list[dict[str, MetricValue]]:
    """All rows of a metrics file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
