"""The figures of an RL update; `training/metrics.py` has the table of their names."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from turngym.training.collect import action_tokens
from turngym.training.guard import Signs
from turngym.training.ledger import Ledger
from turngym.training.metrics import MetricValue
from turngym.training.update.policy import PolicyReport
from turngym.types import Episode


def rollout_metrics(episodes: Sequence[Episode]) -> dict[str, MetricValue]:
    """How the episodes of an update went; infra failures are outside."""
    counted = [episode for episode in episodes if episode.outcome != "infra"]
    turns = [turn for episode in counted for turn in episode.turns]
    tokens = sum(action_tokens(episode) for episode in counted)
    row: dict[str, MetricValue] = {
        "rollout/success": sum(e.success for e in counted) / max(len(counted), 1),
        "rollout/return_mean": sum(e.episode_return for e in counted) / max(len(counted), 1),
        "rollout/turns_per_episode": len(turns) / max(len(counted), 1),
        "rollout/tokens_per_turn": tokens / max(len(turns), 1),
        "rollout/valid_share": sum(turn.valid for turn in turns) / max(len(turns), 1),
        "rollout/repetition": _repetition(counted),
    }
    outcomes = Counter(episode.outcome for episode in episodes)
    return row | {f"outcome/{outcome}": count for outcome, count in sorted(outcomes.items())}


def policy_metrics(report: PolicyReport) -> dict[str, MetricValue]:
    """What the policy's optimizer steps did."""
    kl = {"kl/k1": report.kl_k1, "kl/k3": report.kl_k3}
    row: dict[str, MetricValue] = {name: value for name, value in kl.items() if value is not None}
    return row | {
        "loss/policy": report.policy_loss,
        "loss/kl": report.kl_loss,
        "policy/entropy": report.entropy,
        "policy/clip_share": report.clip_share,
        "policy/dual_clip_share": report.dual_clip_share,
        "policy/approx_kl": report.approx_kl,
        "policy/grad_norm": report.grad_norm,
        "policy/sampler_gap_mean": report.sampler_gap_mean,
        "policy/sampler_gap_max": report.sampler_gap_max,
        "policy/steps": report.steps,
    }


def shared_critic_metrics(report: PolicyReport) -> dict[str, MetricValue]:
    """What the steps did to a critic on the policy's trunk; nothing where it has none."""
    if report.value_loss is None or report.critic_grad_norm is None:
        return {}
    return {"loss/value": report.value_loss, "critic/grad_norm": report.critic_grad_norm}


def signs_of(row: Mapping[str, MetricValue], ledger: Ledger) -> Signs:
    """What the guard watches in an update's row."""
    entropy, norm = row.get("policy/entropy"), row.get("policy/grad_norm")
    return Signs(
        trained_episodes=ledger.episodes["trained"],
        success=float(row["rollout/success"]),
        repetition=float(row["rollout/repetition"]),
        entropy=None if entropy is None else float(entropy),
        grad_norm=None if norm is None else float(norm),
    )


def _repetition(episodes: Sequence[Episode]) -> float:
    """Share of action tokens equal to the token before them."""
    same = total = 0
    for segment in (segment for episode in episodes for segment in episode.segments):
        ids = np.array(segment.token_ids)
        for span in segment.spans:
            if span.author == "policy" and span.start > 0:
                same += int((ids[span.start : span.end] == ids[span.start - 1 : span.end - 1]).sum())
                total += span.end - span.start
    return same / max(total, 1)
