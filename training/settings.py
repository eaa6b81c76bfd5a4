"""The recipe: every setting of a run, its default, its meaning."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from turngym.config import REGISTRIES, Settings
from turngym.errors import ConfigError, suggest
from turngym.training.advantages import ADVANTAGES, AdvantageSettings
from turngym.training.advantages.base import compares_groups, needs_critic
from turngym.training.losses.averages import Average
from turngym.training.losses.ratio import Unit

StrictBool = Annotated[bool, Field(strict=True)]


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"needs a number, got {value!r}")
    return value


Int = Annotated[int, BeforeValidator(_no_bool)]
Float = Annotated[float, BeforeValidator(_no_bool)]


def choose(kind: str, value: Any) -> Any:
    """Settings of a choice `{name: ..., its settings}` or plain name, validated by its own model."""
    if isinstance(value, Settings):
        return value
    given = {"name": value} if isinstance(value, str) else dict(value) if isinstance(value, dict) else None
    if given is None or "name" not in given:
        raise ValueError(f"give a name, as in `{kind}: NAME` or `{kind}: {{name: NAME, ...}}`")
    method = REGISTRIES[kind][given["name"]]
    unknown = sorted(set(given) - set(method.settings.model_fields))
    if unknown:
        known = sorted(set(method.settings.model_fields) - {"name"})
        raise ConfigError(
            f"{kind}.{unknown[0]} is not a setting of {given['name']}. {suggest(unknown[0], known)}"
        )
    return method.settings.model_validate(given)


class TinyModel(Settings):
    """A word-level tokenizer and a small Llama, made from nothing for the run's environments."""

    preset: Literal["tiny"] = "tiny"
    """Which kind of model is made."""
    hidden: Int = Field(128, ge=8)
    """Width."""
    layers: Int = Field(3, ge=1)
    """Number of transformer layers."""
    heads: Int = Field(4, ge=1)
    """Attention heads."""
    ff: Int = Field(320, ge=8)
    """Width of the feed-forward part."""
    positions: Int = Field(1024, ge=32)
    """Longest sequence the model can hold, in tokens."""


class FolderModel(Settings):
    """A Hugging Face folder, or a checkpoint of turngym."""

    path: str
    """The folder."""


class AgentSettings(Settings):
    """How the model plays."""

    template: Literal["plain"] = "plain"
    """Chat template; `plain` is that of tiny models."""
    action_format: Literal["plain"] = "plain"
    """How a reply becomes a command; `plain`: the reply is the command."""
    context: Literal["full"] = "full"
    """What the model sees of the past; `full`: all of it."""
    temperature: Float = Field(1.0, gt=0)
    """Sampling temperature of training rollouts; also divides the logits of every RL log-prob."""
    max_new_tokens: Int = Field(16, ge=1)
    """Most tokens of one message."""
    max_context: Int = Field(1024, ge=16)
    """Most tokens of one episode; one that would pass it ends by token_limit."""


class EnvSettings(Settings):
    """One environment of the run."""

    id: str
    """Environment id: Name-v0, ns/Name-v0 or module:ns/Name-v0."""
    kwargs: dict[str, Any] = {}
    """Arguments of its constructor."""
    weight: Float = Field(1.0, gt=0)
    """Share of the tasks, and in SFT of the demonstrations, against the other environments."""


class TaskSlice(Settings):
    """Which training tasks a stage uses, by place in the split."""

    start: Int = Field(0, ge=0)
    """First task."""
    count: Int | None = Field(None, ge=1)
    """Number of tasks; unset takes all that follow."""


class OptimSettings(Settings):
    """Optimizer and learning rate."""

    name: Literal["adamw", "muon"] = "adamw"
    """`muon`: orthogonalised momentum in float32 on matrices, AdamW on the rest."""
    lr: Float = Field(1e-3, gt=0)
    """Learning rate of AdamW, at its height."""
    muon_lr: Float = Field(0.015, gt=0)
    """Learning rate of Muon's matrices, at its height."""
    betas: tuple[Float, Float] = (0.9, 0.98)
    """AdamW's decay rates of the gradient's mean and square."""
    weight_decay: Float = Field(0.0, ge=0)
    """Decoupled weight decay."""
    max_grad_norm: Float = Field(1.0, gt=0)
    """Gradients are scaled down to this norm."""
    warmup: Int = Field(0, ge=0)
    """Steps in which the learning rate rises from 0."""
    hold: Float = Field(1.0, ge=0, le=1)
    """Share of the stage's steps after which the learning rate falls linearly."""
    final: Float = Field(0.0, ge=0, le=1)
    """Learning rate at the end, as a share of its height."""


class AugmentSettings(Settings):
    """One augmentation of demonstrations, offered by the environment."""

    name: str
    """Name, as in the environment's `augmentations`."""
    share: Float = Field(0.5, ge=0, le=1)
    """Share of demonstrations that it changes."""
    start: Float = Field(0.0, ge=0, le=1)
    """Share of the stage's steps after which it begins."""
    stop: Float = Field(1.0, ge=0, le=1)
    """Share of the stage's steps after which it ends."""


class DemoSettings(Settings):
    """Demonstrations that the environment's expert plays for SFT."""

    noise: tuple[Float, ...] = (0.0, 0.3)
    """Each task is played once per entry; a turn is a slip with this probability, then the expert re-plans."""
    files: tuple[str, ...] = ()
    """Episode files to use instead of playing."""
    keep: Literal["all", "won"] = "all"
    """Which episodes are kept."""


class SftSettings(Settings):
    """Supervised fine-tuning on demonstrations."""

    name: str = "sft"
    """Name of the stage; two stages of a kind need different ones."""
    steps: Int = Field(ge=1)
    """Optimizer steps."""
    episodes_per_step: Int = Field(16, ge=1)
    """Demonstrations in one optimizer step."""
    bucket: Int = Field(8, ge=1)
    """Steps' worth of demonstrations that are sorted by length together, to save padding."""
    tasks: TaskSlice = TaskSlice()
    """Training tasks whose demonstrations are used."""
    demos: DemoSettings = DemoSettings()
    """How demonstrations are had."""
    augment: tuple[AugmentSettings, ...] = ()
    """Changes that hold the facts, drawn anew each time a demonstration is used."""
    train_on: Literal["expert", "all"] = "expert"
    """`expert`: slips stay in the context but carry no loss; `all`: slips are imitated too."""
    text_weight: Float = Field(0.0, ge=0)
    """Weight of the loss on observation and instruction tokens, against 1 on action tokens."""
    optim: OptimSettings = OptimSettings()
    """Optimizer and learning rate."""
    tokens_per_batch: Int = Field(4096, ge=1)
    """Most tokens, padding included, of one forward pass."""
    checkpoint_every: Int = Field(0, ge=0)
    """Steps between checkpoints; 0 makes one at the end only."""


class PolicyLossSettings(Settings):
    """PPO's clipped loss."""

    name: Literal["clip"] = "clip"
    """Which loss."""
    ratio: Unit = "token"
    """Whose importance ratio a token is weighed by: its own, or the geometric mean over its turn or episode."""
    clip_low: Float = Field(0.2, ge=0, lt=1)
    """The ratio gains nothing below 1 - clip_low; must be given where the ratio is that of a turn or an episode."""
    clip_high: Float = Field(0.2, ge=0)
    """The ratio gains nothing above 1 + clip_high; must be given where the ratio is that of a turn or an episode."""
    dual_clip: Float | None = Field(None, gt=1)
    """Tokens of negative advantage A lose at most -dual_clip times A, 3 as a rule; unset leaves them unbounded."""

    @model_validator(mode="after")
    def _ranges_fit_the_unit(self) -> "PolicyLossSettings":
        unset = sorted({"clip_low", "clip_high"} - self.model_fields_set)
        if self.ratio != "token" and unset:
            raise ValueError(
                f"ratio: {self.ratio} needs {' and '.join(unset)} of its own: a mean over many tokens moves far less "
                "than one token's ratio. Set both, as in clip_low: 3e-4 clip_high: 4e-4 for whole episodes"
            )
        return self


class MismatchSettings(Settings):
    """Weights of the policy's loss where another program than the trainer sampled the tokens."""

    name: Literal["none", "truncate"] = "none"
    """`truncate`: min(cap, trainer's probability before the update / sampler's)."""
    cap: Float = Field(2.0, gt=0)
    """Largest weight."""
    unit: Unit = "token"
    """Whose weight a token takes: its own, or the geometric mean over its turn or episode."""


class KlSettings(Settings):
    """KL to the policy that the stage started from."""

    name: Literal["none", "reward", "loss"] = "none"
    """`reward` takes it from the turn's reward; `loss` adds it to the loss."""
    beta: Float = Field(0.0, ge=0)
    """Its weight; above 0 exactly where `name` is not `none`."""
    estimator: Literal["k2", "k3"] = "k2"
    """Estimator of `loss`; k1 would have no gradient, k3 is biased."""
    update_every: Int = Field(0, ge=0)
    """Updates after which the reference takes over the policy's weights; 0 keeps the one that the stage began with."""
    update_share: Float = Field(1.0, gt=0, le=1)
    """How far the reference then moves to the policy: 1 takes its weights, less keeps some of the old ones."""

    @model_validator(mode="after")
    def _beta_goes_with_name(self) -> "KlSettings":
        if (self.name == "none") != (self.beta == 0):
            raise ValueError(
                f"name: {self.name} with beta: {self.beta:g} has no effect. "
                "Set both, as in kl.name=loss kl.beta=0.01, or neither"
            )
        if self.update_every == 0 and self.update_share < 1:
            raise ValueError(
                "update_share has no effect without update_every. Set update_every, or leave both out"
            )
        if self.name == "none" and self.update_every:
            raise ValueError(
                "update_every has no effect with name: none. Set name: loss or reward, or leave it out"
            )
        return self


class CriticSettings(Settings):
    """The critic of estimators that need one: a scalar head on a copy of the stage's first policy, or on the policy."""

    shared: StrictBool = False
    """The head stands on the policy's own trunk, which then learns from both losses in the same steps."""
    optim: OptimSettings = OptimSettings()
    """Optimizer and learning rate of the critic; of its head alone where the trunk is shared."""
    value_clip: Float | None = Field(None, gt=0)
    """A value gains nothing by moving further than this from what it was before the update; unset never limits it."""
    warmup_updates: Int = Field(0, ge=0)
    """Updates at the start in which only the critic learns."""


class GuardSettings(Settings):
    """When training stops itself, with the last good checkpoint."""

    flat_updates: Int = Field(10, ge=1)
    """Updates in a row in which every group was flat or nothing was left to train on."""
    min_entropy: Float = Field(0.0, ge=0)
    """Mean entropy of action tokens, in nats; lower three updates in a row stops. 0 never does."""
    max_entropy: Float = Field(0.0, ge=0)
    """Likewise for higher; 0 never does."""
    max_grad_norm: Float = Field(1e4, gt=0)
    """Gradient norm before clipping; higher, or not finite, stops at once."""
    min_success: Float = Field(0.0, ge=0, le=1)
    """Share of won training episodes; lower three updates in a row stops."""
    max_repetition: Float = Field(0.95, gt=0, le=1)
    """Share of action tokens equal to the token before; higher three updates in a row stops."""


class RlSettings(Settings):
    """Reinforcement learning over turns."""

    name: str = "rl"
    """Name of the stage; two stages of a kind need different ones."""
    updates: Int = Field(ge=1)
    """Rollout-and-update rounds."""
    groups: Int = Field(8, ge=1)
    """Tasks per update."""
    group_size: Int = Field(8, ge=1)
    """Episodes of each task."""
    tasks: TaskSlice = TaskSlice()
    """Training tasks that are drawn, each once before any twice."""
    advantage: SerializeAsAny[AdvantageSettings]
    """How episodes become advantages: `{name, credit, ...}`."""
    policy_loss: PolicyLossSettings = PolicyLossSettings()
    """The policy's loss."""
    average: Average = "token"
    """What the loss is averaged over."""
    constant: Float = Field(100.0, gt=0)
    """C of average: constant, in action tokens per episode."""
    kl: KlSettings = KlSettings()
    """KL to the reference, which is the starting policy unless it is updated."""
    mismatch: MismatchSettings = MismatchSettings()
    """What is done about a sampler whose probabilities are not the trainer's."""
    entropy: Float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    value_weight: Float = Field(0.5, ge=0)
    """Weight of the critic's loss."""
    truncation: Literal["terminal", "bootstrap"] | None = None
    """token_limit endings: unset means bootstrap with a critic and terminal without."""
    bootstrap_turn_limit: StrictBool = False
    """Endings by the turn limit are bootstrapped too; they end for good otherwise, since the limit is part of the task."""
    epochs: Int = Field(1, ge=1)
    """Passes over the episodes of an update."""
    minibatches: Int = Field(1, ge=1)
    """Optimizer steps per pass."""
    old_log_probs: Literal["trainer", "sampler"] = "trainer"
    """Log-probs before the update: the trainer's own forward pass, or the sampler's, which is checked to agree."""
    optim: OptimSettings = OptimSettings()
    """Optimizer and learning rate of the policy."""
    critic: CriticSettings = CriticSettings()
    """The critic, where the advantage needs one."""
    guard: GuardSettings = GuardSettings()
    """When training stops itself."""
    tokens_per_batch: Int = Field(8192, ge=1)
    """Most tokens, padding included, of one forward pass."""
    checkpoint_every: Int = Field(10, ge=1)
    """Updates between checkpoints."""
    save_episodes: StrictBool = True
    """Write all training episodes to OUT/STAGE/episodes.jsonl."""

    @field_validator("advantage", mode="before")
    @classmethod
    def _choose_advantage(cls, value: Any) -> Any:
        return choose("advantage", value)

    @field_validator("policy_loss", "kl", "mismatch", mode="before")
    @classmethod
    def _plain_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_the_advantage(self) -> "RlSettings":
        name = self.advantage.name
        function = ADVANTAGES[name].function
        if self.truncation == "bootstrap" and not needs_critic(function):
            raise ValueError(
                f"truncation: bootstrap needs a critic, and advantage {name} has none. "
                "Use advantage: gae or truncation: terminal"
            )
        if self.bootstrap_turn_limit and (self.truncation == "terminal" or not needs_critic(function)):
            raise ValueError(
                "bootstrap_turn_limit has no effect without a critic or with truncation: terminal. "
                "Use advantage: gae with truncation: bootstrap, or leave it out"
            )
        if self.group_size < 2 and compares_groups(function):
            raise ValueError(
                f"advantage {name} compares the members of a group, and group_size is {self.group_size}. "
                "Set group_size to 2 or more, or use advantage: gae"
            )
        return self

    @model_validator(mode="after")
    def _mismatch_is_measured(self) -> "RlSettings":
        if self.mismatch.name != "none" and self.old_log_probs == "sampler":
            raise ValueError(
                "mismatch weights would all be 1 with old_log_probs: sampler. Set old_log_probs: trainer"
            )
        return self


class Stage(Settings):
    """One stage: exactly one of `sft` and `rl`."""

    sft: SftSettings | None = None
    """Supervised fine-tuning."""
    rl: RlSettings | None = None
    """Reinforcement learning."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Stage":
        if (self.sft is None) == (self.rl is None):
            raise ValueError("a stage is either `sft: ...` or `rl: ...`")
        return self

    @property
    def settings(self) -> SftSettings | RlSettings:
        chosen = self.sft or self.rl
        if chosen is None:
            raise AssertionError("the validator lets no empty stage through")
        return chosen


class ValidationSettings(Settings):
    """Measuring on validation tasks during training; choices are made on these figures."""

    every: Int = Field(0, ge=0)
    """Updates or steps between measurements; 0 measures at the end of each stage."""
    tasks: Int = Field(64, ge=1)
    """Number of validation tasks, the first of the split."""
    keep: Literal["last", "best"] = "last"
    """Which weights a stage hands on: the last, or those of the best greedy success (the later of equals)."""


class RunSettings(Settings):
    """Where and how the run runs."""

    seed: Int = Field(1, ge=0)
    """Root of every stream of chance."""
    out: str = ""
    """Folder of the run; unset: runs/RECIPE-seedN."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the model lives."""
    dtype: Literal["float32"] = "float32"
    """Numbers of weights and activations."""
    threads: Int = Field(2, ge=1)
    """CPU threads of torch; a resumed run needs the same number."""
    slots: Int = Field(64, ge=1)
    """Most episodes under way at one time."""
    workers: Int = Field(0, ge=0)
    """Worker processes of the environments; 0 runs them inline. The run's result does not depend on it."""
    deadline_s: Float = Field(120.0, gt=0)
    """Longest time of one reset or turn in a worker; one that takes longer is killed, and the episode judged."""
    worker_memory_mb: Float = Field(1024.0, gt=0)
    """Memory past which a worker is replaced when its episodes are over; at twice as much it is killed."""
    schedule: Literal["deterministic"] = "deterministic"
    """Which rows share a batch: never by arrival time."""
    resume: Literal["auto", "never"] = "auto"
    """`auto` goes on from the newest complete checkpoint of the folder."""
    keep_checkpoints: Int = Field(2, ge=1)
    """How many of the newest checkpoints stay."""


_RESERVED = frozenset(
    {
        "description",
        "imports",
        "model",
        "agent",
        "envs",
        "stages",
        "validation",
        "run",
        "checkpoints",
        "final",
    }
)
"""Names that no stage may have: overrides or folders of the run would mean something else."""


class Recipe(Settings):
    """A whole run."""

    description: str = ""
    """What the recipe shows, and why its choices are as they are."""
    imports: tuple[str, ...] = ()
    """Modules to import first, which register methods or environments."""
    model: TinyModel | FolderModel = TinyModel()
    """Which model is trained."""
    agent: AgentSettings = AgentSettings()
    """How it plays."""
    envs: tuple[EnvSettings, ...] = Field(min_length=1)
    """What it plays."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    """What is done, one after the other."""
    validation: ValidationSettings = ValidationSettings()
    """Measuring during training."""
    run: RunSettings = RunSettings()
    """Where and how."""

    @field_validator("model", mode="before")
    @classmethod
    def _which_model(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"preset": "tiny"} if value == "tiny" else {"path": value}
        if isinstance(value, dict):
            model = FolderModel if "path" in value else TinyModel
            unknown = sorted(set(value) - set(model.model_fields))
            if unknown:
                raise ConfigError(f"{unknown[0]} is not a setting. {suggest(unknown[0], model.model_fields)}")
            return model.model_validate(value)
        return value

    @model_validator(mode="after")
    def _context_fits(self) -> "Recipe":
        if isinstance(self.model, TinyModel) and self.agent.max_context > self.model.positions:
            raise ValueError(
                f"agent.max_context = {self.agent.max_context} exceeds model.positions = {self.model.positions}; "
                "lower the first or raise the second"
            )
        return self

    @model_validator(mode="after")
    def _stage_names(self) -> "Recipe":
        names = [stage.settings.name for stage in self.stages]
        for name in names:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or name in _RESERVED:
                raise ValueError(
                    f"a stage cannot be called {name!r}, since a folder of the run is named after it. "
                    "Use letters, digits, - and _, and none of the recipe's own keys"
                )
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two stages are called {doubled[0]!r}; give each its own `name`")
        return self
