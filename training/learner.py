"""What learns in an RL stage, and the check that the engine plays with its weights."""

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import PreTrainedModel

from turngym.agents.language_model import LanguageModel
from turngym.agents.load import load_model
from turngym.errors import ConfigError, InfraError
from turngym.training.advantages.base import ADVANTAGES, needs_critic
from turngym.training.batch import RolloutBatch
from turngym.training.checkpoint import Tensors, load_tensors
from turngym.training.forward import Critic
from turngym.training.metrics import MetricValue
from turngym.training.optimizers import OptimizerSet
from turngym.training.session import CHECKPOINTS, Session
from turngym.training.settings import RlSettings

CANARY_TOLERANCE = 1e-3
CANARY_TOKENS = 64


@dataclass(slots=True)
class Learner:
    """What learns in the stage, and what it is held against."""

    policy: LanguageModel
    optimizer: OptimizerSet
    critic: Critic | None
    critic_optimizer: OptimizerSet | None
    reference: LanguageModel | None
    reference_moves: bool = False

    def tensors(self) -> Tensors:
        """What a checkpoint keeps of it."""
        critic_states = self.critic_optimizer.state_dict() if self.critic_optimizer else []
        moved = self.reference.model if self.reference is not None and self.reference_moves else None
        return Tensors(self.optimizer.state_dict(), self.critic, critic_states, moved)

    @torch.no_grad()
    def move_reference(self, share: float) -> None:
        """Moves the reference's weights by a share of the way to the policy's."""
        if self.reference is None:
            return
        for old, new in zip(self.reference.model.parameters(), self.policy.model.parameters(), strict=True):
            # lerp with weight 1 gives the policy's weights exactly.
            old.lerp_(new, share)


def make_learner(session: Session, settings: RlSettings) -> Learner:
    """Policy, and critic and reference where the settings need them, as the state says or fresh."""
    resumed: dict[str, Any] = {}
    if session.state.stage_updates:
        resumed = load_tensors(session.out / CHECKPOINTS / f"step-{session.state.step:08d}")
    steps = settings.updates * settings.epochs * settings.minibatches
    policy = LanguageModel.of(session.model)
    optimizer = OptimizerSet(session.model, settings.optim, steps)
    start = _start_model(session, settings)
    critic, critic_optimizer = None, None
    if needs_critic(ADVANTAGES[settings.advantage.name].function):
        critic = _new_critic(policy, start, settings)
        trained = critic.head if settings.critic.shared else critic
        critic_optimizer = OptimizerSet(trained, settings.critic.optim, steps)
        if resumed:
            critic.load_state_dict(resumed["critic"])
            critic_optimizer.load_state_dict(resumed["critic_optimizer"])
    if resumed:
        optimizer.load_state_dict(resumed["optimizer"])
    reference = None
    if settings.kl.name != "none":
        reference = LanguageModel.of(copy.deepcopy(start).requires_grad_(False))
        if resumed.get("reference"):
            reference.model.load_state_dict(resumed["reference"])
    return Learner(
        policy, optimizer, critic, critic_optimizer, reference, reference_moves=settings.kl.update_every > 0
    )


def _new_critic(policy: LanguageModel, start: PreTrainedModel, settings: RlSettings) -> Critic:
    if not settings.critic.shared:
        return Critic(cast(PreTrainedModel, copy.deepcopy(start.base_model)))
    if not policy.splits:
        raise ConfigError(
            f"{settings.name}.critic.shared: {type(policy.model).__name__} changes its logits behind the head, so its "
            "hidden states cannot be read. Set critic.shared=false."
        )
    return Critic(cast(PreTrainedModel, policy.model.base_model), shares_trunk=True)


def canary(session: Session, learner: Learner, batch: RolloutBatch | None) -> dict[str, MetricValue]:
    """Scores some tokens in trainer and engine after the weights changed.

    Raises:
        InfraError: they differ by more than the tolerance, so the engine plays with other weights.
    """
    if batch is None:
        return {}
    ids = [int(i) for i in batch.rows[0].token_ids[:CANARY_TOKENS]]
    learner.policy.model.eval()
    with torch.no_grad():
        device = learner.policy.model.device
        logits = learner.policy.model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0]
        wanted = torch.log_softmax(logits[:-1].float(), dim=-1)
        wanted = wanted.gather(1, torch.tensor(ids[1:], device=device).unsqueeze(1)).squeeze(1)
    gap = float((session.engine.score(ids) - wanted).abs().max())
    if not gap <= CANARY_TOLERANCE:
        raise InfraError(
            f"After the weights changed, engine and trainer differ by {gap:.2g} in log-prob (tolerance "
            f"{CANARY_TOLERANCE:g}): the engine plays with other weights. The run stopped; nothing was saved since."
        )
    return {"policy/canary_gap": gap}


def _start_model(session: Session, settings: RlSettings) -> PreTrainedModel:
    """The policy as the stage began, from its folder where the run was resumed inside the stage."""
    start = session.out / settings.name / "start"
    if session.state.stage_updates == 0:
        session.save_weights(start, "the start of the stage")
        return session.model
    model, _ = load_model(start, device=session.recipe.run.device)
    return model
