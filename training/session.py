"""What the stages of a run share: model, engine, environments, folders, counters."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from turngym.agents.agent_config import AgentConfig
from turngym.agents.engines.local import LocalEngine
from turngym.agents.rollout import FaultCeiling
from turngym.envs.pool import EnvPool, PoolCounts
from turngym.training.checkpoint import Tensors, TrainerState, save_checkpoint, save_model
from turngym.training.collect import validation_sources
from turngym.training.metrics import MetricsLog, MetricValue
from turngym.training.settings import Recipe
from turngym.training.validation import Validated, validate_policy

CHECKPOINTS = "checkpoints"


@dataclass(slots=True)
class Session:
    """A run under way. `state` is replaced, never changed in place."""

    recipe: Recipe
    out: Path
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    engine: LocalEngine
    pool: EnvPool
    metrics: MetricsLog
    state: TrainerState
    ceiling: FaultCeiling = field(default_factory=FaultCeiling)
    on_progress: Callable[[str, int, int], None] | None = None
    started: float = field(default_factory=time.perf_counter)
    told_counts: PoolCounts = field(default_factory=PoolCounts)

    @property
    def seed(self) -> int:
        return self.recipe.run.seed

    def agent_config(self, selected_on: str = "nothing: the last weights") -> AgentConfig:
        """How the model plays, for the checkpoint's folder."""
        agent = self.recipe.agent
        return AgentConfig(
            template=agent.template,
            action_format=agent.action_format,
            context=agent.context,
            temperature=agent.temperature,
            max_new_tokens=agent.max_new_tokens,
            max_context=agent.max_context,
            envs=tuple(sorted({env.id for env in self.recipe.envs})),
            trained_tasks=tuple(self.state.trained_tasks),
            weights_version=self.state.step,
            selected_on=selected_on,
        )

    def advance(self, **changes: object) -> None:
        """Counts one more update and takes other changes of the state."""
        self.state = self.state.model_copy(
            update={"step": self.state.step + 1, "stage_updates": self.state.stage_updates + 1, **changes}
        )

    def log(self, stage: str, row: Mapping[str, MetricValue]) -> None:
        """Writes a row of metrics for the update just done, with what happened to the workers since the last."""
        place: dict[str, MetricValue] = {
            "stage": stage,
            "update": self.state.stage_updates,
            "step": self.state.step,
        }
        counts = self.pool.counts
        workers: dict[str, MetricValue] = {}
        if counts is not None:
            workers = {f"pool/{name}": value for name, value in asdict(counts - self.told_counts).items()}
            self.told_counts = counts
        self.metrics.write(place | dict(row) | workers | {"time/total_s": round(self.seconds(), 3)})

    def seconds(self) -> float:
        """Wall seconds of the run, over all its resumptions."""
        return self.state.seconds + time.perf_counter() - self.started

    def validate(self) -> Validated:
        """Measures the present weights on the validation tasks."""
        sources = validation_sources(self.recipe)
        return validate_policy(
            self.engine,
            self.tokenizer,
            self.agent_config(),
            sources,
            self.pool,
            seed=self.seed,
            slots=self.recipe.run.slots,
        )

    def save(self, tensors: Tensors) -> Path:
        """Writes a checkpoint from which the run can go on."""
        state = self.state.model_copy(update={"seconds": self.seconds()})
        return save_checkpoint(
            self.out / CHECKPOINTS,
            state,
            self.model,
            self.tokenizer,
            self.agent_config(),
            tensors,
            keep=self.recipe.run.keep_checkpoints,
        )

    def save_weights(self, folder: Path, selected_on: str) -> None:
        """Writes weights to play with, without the trainer's state."""
        save_model(folder, self.model, self.tokenizer, self.agent_config(selected_on))
