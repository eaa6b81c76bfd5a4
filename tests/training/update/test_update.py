"""The update: its gradients against brute force, and all that must not change them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from turngym.agents.language_model import LanguageModel
from turngym.agents.transcript import Transcript
from turngym.training.batch import RolloutBatch, rollout_batch
from turngym.training.forward import Critic
from turngym.training.losses.averages import Average
from turngym.training.optimizers import OptimizerSet
from turngym.training.settings import RlSettings
from turngym.training.update.columns import TokenColumns, ValueColumns, episode_parts, unit_ids
from turngym.training.update.critic import update_critic
from turngym.training.update.policy import PolicyReport, SharedCritic, update_policy
from turngym.training.update.values import bootstrap_values, critic_values, following_prompt
from turngym.types import Episode, PlayedTurn, Segment, Span

AVERAGES: tuple[Average, ...] = ("token", "turn", "episode", "constant")
TEMPERATURE = 0.8


def model_of(seed: int = 0) -> LlamaForCausalLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=64, initializer_range=0.3,
        )  # fmt: skip
        model = LlamaForCausalLM(config)
    model.eval()
    return model


class Kept(OptimizerSet):
    """Keeps the gradients of each step and takes none."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model, RlSettings(updates=1, advantage={"name": "grpo"}).optim, 1)
        self.gradients: list[Tensor] = []

    def step(self, done: int) -> float:
        parts = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in self.params]
        self.gradients.append(torch.cat(parts).double())
        self.zero_grad()
        return float(self.gradients[-1].norm())


def segment_of(rng: np.random.Generator, turns: Sequence[int]) -> Segment:
    """Some observation tokens and some action tokens per turn; an odd tail behind the last."""
    ids: list[int] = []
    spans: list[Span] = []
    for turn in turns:
        for author in ("env", "policy"):
            start = len(ids)
            ids += rng.integers(0, 30, size=int(rng.integers(1, 5))).tolist()
            spans.append(Span(start, len(ids), turn, author))
    spans.append(Span(len(ids), len(ids) + 3, turns[-1] + 1, "env"))
    ids += [1, 2, 3]
    log_probs = [0.0] * len(ids)
    for span in spans:
        if span.author == "policy":
            log_probs[span.start : span.end] = rng.uniform(-4, -2, size=span.end - span.start).tolist()
    return Segment(tuple(ids), tuple(log_probs), tuple(spans))


def episodes_of(seed: int = 0, count: int = 6) -> list[Episode]:
    """Episodes of 1 to 3 turns; the second has two segments, the third one more without action tokens."""
    rng = np.random.default_rng(seed)
    episodes = []
    for number in range(count):
        length = 3 if number == 1 else int(rng.integers(1, 4))
        segments = [segment_of(rng, range(length))]
        if number == 1:
            segments = [segment_of(rng, [0]), segment_of(rng, [1, 2])]
        if number == 2:
            segments.append(Segment((4, 5, 6), (0.0,) * 3, (Span(0, 3, length, "env"),)))
        turns = tuple(
            PlayedTurn(
                command="x",
                observation="y",
                reward=float(rng.normal()),
                score=0.0,
                valid=True,
                author="policy",
            )
            for _ in range(length)
        )
        episodes.append(
            Episode(
                number=number,
                group=number // 2,
                env_id="e",
                env_kwargs={},
                task="t",
                seed=0,
                attempt=0,
                agent="a",
                instructions="",
                observation="",
                turns=turns,
                outcome="lost",
                score=0.0,
                max_score=1.0,
                start_key="",
                segments=tuple(segments),
            )  # fmt: skip
        )
    return episodes


def table_of(batch: RolloutBatch, seed: int = 7) -> Tensor:
    """(N, T) advantages that depend on the episode's number alone."""
    table = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for i, episode in enumerate(batch.episodes):
        table[i] = torch.from_numpy(np.random.default_rng([seed, episode.number]).normal(size=9))[
            : table.shape[1]
        ]
    return table


def columns_of(batch: RolloutBatch, *, old: Tensor | None = None, reference: Tensor | None = None, dropped: Sequence[int] = ()) -> TokenColumns:  # fmt: skip
    kept = torch.tensor([episode.number not in dropped for episode in batch.episodes])
    return TokenColumns(
        table_of(batch)[batch.token_episode, batch.token_turn].float(),
        kept[batch.token_episode],
        old,
        reference,
    )


def settings_of(**changes: Any) -> RlSettings:
    return RlSettings.model_validate({"updates": 1, "advantage": "grpo", **changes})


def step_of(
    batch: RolloutBatch, columns: TokenColumns, settings: RlSettings, model: LlamaForCausalLM | None = None
) -> tuple[list[Tensor], PolicyReport]:
    lm = LanguageModel.of(model or model_of())
    optimizer = Kept(lm.model)
    report = update_policy(lm, batch, columns, settings, optimizer, temperature=TEMPERATURE, seed=1, update=0)
    return optimizer.gradients, report


def assert_near(got: Tensor, wanted: Tensor, relative: float = 1e-6) -> None:
    assert float((got - wanted).norm() / wanted.norm()) < relative


def brute(
    batch: RolloutBatch, settings: RlSettings, *, old: Tensor | None = None, reference: Tensor | None = None, dropped: Sequence[int] = ()
) -> tuple[Tensor, float]:  # fmt: skip
    """Gradient and policy loss from DEFINITIONS section 5, token by token, each row alone."""
    model, table = model_of(), table_of(batch)
    ratios = ratios_by_hand(model, batch, settings, old)
    units: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
    m = 0
    for row in batch.rows:
        logits = (
            model(input_ids=torch.from_numpy(row.token_ids).unsqueeze(0), use_cache=False).logits[0].double()
        )
        scores = torch.log_softmax(logits / TEMPERATURE, dim=-1)
        for place in np.flatnonzero(row.action_mask):
            new = scores[place - 1, row.token_ids[place]]
            before = new.detach() if old is None else old[m].double()
            ratio, advantage = ratios[m], float(table[row.episode, row.turn[place]])
            low, high = settings.policy_loss.clip_low, settings.policy_loss.clip_high
            policy = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(1 - low, 1 + high))
            extra = settings.entropy * (scores[place - 1].exp() * scores[place - 1]).sum()
            if reference is not None:
                difference = new - reference[m].double()
                extra = extra + settings.kl.beta * 0.5 * difference**2 * (new - before).exp().detach()
            if batch.episodes[row.episode].number not in dropped:
                units.setdefault((row.episode, int(row.turn[place])), []).append((policy, policy + extra))
            m += 1
    tokens = sum(len(unit) for unit in units.values())
    episodes = {episode for episode, _ in units}
    per_episode = {e: sum(len(unit) for (other, _), unit in units.items() if other == e) for e in episodes}
    total, loss = torch.zeros((), dtype=torch.float64), 0.0
    for (episode, _), unit in units.items():
        weight = {
            "token": 1 / tokens,
            "turn": 1 / len(units) / len(unit),
            "episode": 1 / len(episodes) / per_episode[episode],
            "constant": 1 / len(episodes) / settings.constant,
        }[settings.average]
        total = total + weight * sum(both for _, both in unit)
        loss += weight * sum(float(policy.detach()) for policy, _ in unit)
    model.zero_grad()
    total.backward()
    gradient = torch.cat(
        [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in model.parameters()]
    )
    return gradient.double(), loss


def ratios_by_hand(
    model: LlamaForCausalLM, batch: RolloutBatch, settings: RlSettings, old: Tensor | None
) -> list[Tensor]:
    """Each action token's ratio: its own, or exp of the mean difference over its turn or episode."""
    differences: list[Tensor] = []
    units: list[tuple[int, ...]] = []
    for row in batch.rows:
        ids = torch.from_numpy(row.token_ids).unsqueeze(0)
        scores = torch.log_softmax(
            model(input_ids=ids, use_cache=False).logits[0].double() / TEMPERATURE, dim=-1
        )
        for place in np.flatnonzero(row.action_mask):
            new, m = scores[place - 1, row.token_ids[place]], len(differences)
            differences.append(new - (new.detach() if old is None else old[m].double()))
            unit = {"token": (m,), "turn": (row.episode, int(row.turn[place])), "episode": (row.episode,)}
            units.append(unit[settings.policy_loss.ratio])
    return [
        torch.stack([d for d, other in zip(differences, units, strict=True) if other == unit]).mean().exp()
        for unit in units
    ]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("dropped", [(), (1, 4)])
def test_the_gradient_equals_the_definition(average: Average, dropped: tuple[int, ...]) -> None:
    batch = rollout_batch(episodes_of())
    settings = settings_of(average=average, constant=7.0, entropy=0.3)
    (got,), report = step_of(batch, columns_of(batch, dropped=dropped), settings)
    wanted, loss = brute(batch, settings, dropped=dropped)
    assert_near(got, wanted, 3e-6)
    assert report.policy_loss == pytest.approx(loss, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("average", AVERAGES)
def test_the_gradient_equals_the_definition_off_policy_with_a_reference(average: Average) -> None:
    batch = rollout_batch(episodes_of(3))
    rng = np.random.default_rng(1)
    near = current(batch)
    old = (near + torch.from_numpy(rng.normal(scale=0.3, size=len(near)))).float()
    reference = (near + torch.from_numpy(rng.normal(scale=0.5, size=len(near)))).float()
    settings = settings_of(average=average, constant=3.0, kl={"name": "loss", "beta": 0.2})
    (got,), report = step_of(batch, columns_of(batch, old=old, reference=reference), settings)
    wanted, loss = brute(batch, settings, old=old, reference=reference)
    assert_near(got, wanted, 3e-6)
    assert report.policy_loss == pytest.approx(loss, rel=1e-5, abs=1e-6)
    assert 0 < report.clip_share < 1 and report.approx_kl > 0 and report.kl_loss > 0


def current(batch: RolloutBatch) -> Tensor:
    """(M,) log-probs of the action tokens under the model."""
    model, out = model_of(), []
    with torch.no_grad():
        for row in batch.rows:
            logits = (
                model(input_ids=torch.from_numpy(row.token_ids).unsqueeze(0), use_cache=False)
                .logits[0]
                .double()
            )
            scores = torch.log_softmax(logits / TEMPERATURE, dim=-1)
            out += [scores[place - 1, row.token_ids[place]] for place in np.flatnonzero(row.action_mask)]
    return torch.stack(out)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("budget", [1, 40])
def test_cutting_into_micro_batches_changes_nothing(average: Average, budget: int) -> None:
    # Case 08, and with it padding: at budget 1 no row is padded, in one batch all but one are.
    batch = rollout_batch(episodes_of(1))
    columns = columns_of(batch, dropped=(3,))
    (whole,), one = step_of(
        batch, columns, settings_of(average=average, entropy=0.1, tokens_per_batch=100_000)
    )
    (cut,), two = step_of(batch, columns, settings_of(average=average, entropy=0.1, tokens_per_batch=budget))
    assert_near(cut, whole)
    assert two.policy_loss == pytest.approx(one.policy_loss, rel=1e-6, abs=1e-7)
    assert two.entropy == pytest.approx(one.entropy, rel=1e-6)
    assert two.steps == 1 and two.sampler_gap_max == pytest.approx(one.sampler_gap_max, rel=1e-5)


@pytest.mark.parametrize("average", AVERAGES)
def test_the_order_of_episodes_changes_nothing(average: Average) -> None:
    episodes = episodes_of(2)
    gradients = []
    for order in ([0, 1, 2, 3, 4, 5], [4, 1, 5, 0, 3, 2]):
        batch = rollout_batch([episodes[i] for i in order])
        gradients.append(step_of(batch, columns_of(batch), settings_of(average=average))[0][0])
    assert_near(gradients[1], gradients[0])


@pytest.mark.parametrize("average", AVERAGES)
def test_a_dropped_episode_leaves_numerator_and_denominator(average: Average) -> None:
    episodes = episodes_of(4)
    whole = rollout_batch(episodes)
    fewer = rollout_batch([episode for episode in episodes if episode.number not in (1, 4)])
    settings = settings_of(average=average, entropy=0.2)
    (dropped,), one = step_of(whole, columns_of(whole, dropped=(1, 4)), settings)
    (absent,), two = step_of(fewer, columns_of(fewer), settings)
    assert_near(dropped, absent)
    assert (one.entropy, one.sampler_gap_mean) == pytest.approx((two.entropy, two.sampler_gap_mean), rel=1e-6)


@pytest.mark.parametrize("average", ["turn", "episode", "constant"])
def test_observation_tokens_at_the_end_and_empty_segments_count_nowhere(average: Average) -> None:
    episodes = episodes_of(5)
    longer = []
    for one in episodes:
        first = one.segments[0]
        end = len(first.token_ids)
        tail = replace(
            first,
            token_ids=(*first.token_ids, *range(20)),
            log_probs=(*first.log_probs, *[0.0] * 20),
            spans=(*first.spans, Span(end, end + 20, 9, "env")),
        )
        empty = Segment((7, 7), (0.0, 0.0), (Span(0, 2, 9, "template"),))
        longer.append(replace(one, segments=(tail, *one.segments[1:], empty)))
    settings = settings_of(average=average)
    plain, padded = rollout_batch(episodes), rollout_batch(longer)
    (one_gradient,), _ = step_of(plain, columns_of(plain), settings)
    (two_gradient,), _ = step_of(padded, columns_of(padded), settings)
    assert_near(two_gradient, one_gradient)


def test_at_the_first_step_nothing_is_clipped_and_old_is_the_steps_own_forward() -> None:
    batch = rollout_batch(episodes_of())
    (without,), report = step_of(batch, columns_of(batch), settings_of())
    (given,), _ = step_of(batch, columns_of(batch, old=current(batch).float()), settings_of())
    assert (report.clip_share, report.steps) == (0.0, 1) and abs(report.approx_kl) < 1e-9
    assert_near(given, without, 1e-5)
    gap = (current(batch) - batch.sampler_log_probs).abs()
    assert report.sampler_gap_mean == pytest.approx(float(gap.mean()), rel=1e-5)
    assert report.sampler_gap_max == pytest.approx(float(gap.max()), rel=1e-5)


def test_minibatches_part_the_kept_episodes_and_epochs_part_them_anew() -> None:
    batch = rollout_batch(episodes_of())
    columns = columns_of(batch, dropped=(2,))
    seen = []
    for epoch in range(4):
        parts = episode_parts(columns.kept, batch, 2, 1, "minibatch", 0, epoch)
        assert sorted(i for part in parts for i in part) == [0, 1, 3, 4, 5]
        assert sorted(len(part) for part in parts) == [2, 3]
        seen.append(tuple(frozenset(part) for part in parts))
    assert len(set(seen)) > 1
    assert [set(part) for part in seen[0]] == episode_parts(columns.kept, batch, 2, 1, "minibatch", 0, 0)
    assert len(episode_parts(columns.kept, batch, 9, 1, "minibatch", 0, 0)) == 5  # no empty steps


def test_each_minibatch_is_averaged_over_itself() -> None:
    batch = rollout_batch(episodes_of())
    old = current(batch).float()
    settings = settings_of(minibatches=2, epochs=2)
    gradients, report = step_of(batch, columns_of(batch, old=old), settings)
    assert len(gradients) == report.steps == 4
    numbers = {episode.number for episode in batch.episodes}
    for part, got in zip(
        episode_parts(columns_of(batch).kept, batch, 2, 1, "minibatch", 0, 0), gradients, strict=False
    ):
        wanted, _ = brute(batch, settings, old=old, dropped=sorted(numbers - part))
        assert_near(got, wanted, 1e-5)


def critic_of() -> Critic:
    critic = Critic(model_of(3).model)
    with torch.no_grad():
        critic.head.weight.copy_(torch.linspace(-1, 1, 16))
        critic.head.bias.fill_(0.3)
    return critic


@torch.no_grad()
def value_at(critic: Critic, ids: Sequence[int]) -> float:
    hidden = critic.trunk(input_ids=torch.tensor([list(ids)]), use_cache=False).last_hidden_state[0, -1]
    return float(critic.head(hidden))


def values_by_hand(critic: Critic, batch: RolloutBatch) -> Tensor:
    """V of each action token, from all tokens before it."""
    wanted = [
        value_at(critic, row.token_ids[:place].tolist())
        for row in batch.rows
        for place in np.flatnonzero(row.action_mask)
    ]
    return torch.tensor(wanted, dtype=torch.float64)


@pytest.mark.parametrize("budget", [1, 60, 10_000])
def test_values_are_read_before_each_action_token_over_all_segments(budget: int) -> None:
    batch = rollout_batch(episodes_of())
    got = critic_values(critic_of(), batch, budget)
    torch.testing.assert_close(got, values_by_hand(critic_of(), batch), atol=2e-6, rtol=1e-5)


class Marks:
    """A template whose reply is 9, the observation's length, and 8 before it where the message was cut."""

    name = "marks"
    stop_ids: tuple[int, ...] = (2,)

    def open(self, transcript: Transcript, instructions: str, observation: str) -> None:
        raise NotImplementedError

    def reply(self, transcript: Transcript, observation: str, *, turn: int, cut: bool) -> None:
        transcript.add([8] * cut + [9, len(observation)], turn=turn, author="env")

    def message_ids(self, text: str) -> list[int]:
        raise NotImplementedError


def acted_last(episode: Episode) -> Episode:
    """Without what stands behind the last action token."""
    last = episode.segments[-1]
    end = max(span.end for span in last.spans if span.author == "policy")
    spans = tuple(span for span in last.spans if span.end <= end)
    cut = Segment(last.token_ids[:end], last.log_probs[:end], spans)
    return replace(episode, segments=(*episode.segments[:-1], cut))


@pytest.mark.parametrize("budget", [1, 10_000])
def test_endings_bootstrap_from_the_prompt_that_would_have_followed_if_they_are_asked_to(budget: int) -> None:
    outcomes = ("lost", "token_limit", "token_limit", "turn_limit", "won", "turn_limit")
    episodes = [replace(one, outcome=o) for one, o in zip(episodes_of(), outcomes, strict=True)]  # type: ignore[arg-type]
    episodes[3], episodes[5] = acted_last(episodes[3]), acted_last(episodes[5])
    for place, reason in ((3, "stop"), (5, "length")):
        turns = episodes[place].turns
        last = replace(turns[-1], finish_reason=reason)
        episodes[place] = replace(episodes[place], turns=(*turns[:-1], last))
    batch, follow = rollout_batch(episodes), following_prompt(Marks())
    wanted = torch.zeros(6, dtype=torch.float64)
    for i in (1, 2):
        wanted[i] = value_at(critic_of(), episodes[i].segments[-1].token_ids)
    got = bootstrap_values(critic_of(), batch, budget, outcomes=("token_limit",), following=follow).values
    torch.testing.assert_close(got, wanted, atol=2e-6, rtol=1e-5)
    for i, reply in ((3, (9, 1)), (5, (8, 9, 1))):
        wanted[i] = value_at(critic_of(), (*episodes[i].segments[-1].token_ids, *reply))
    both = ("token_limit", "turn_limit")
    got = bootstrap_values(critic_of(), batch, budget, outcomes=both, following=follow).values  # type: ignore[arg-type]
    torch.testing.assert_close(got, wanted, atol=2e-6, rtol=1e-5)
    assert not bootstrap_values(critic_of(), batch, budget, outcomes=(), following=follow).values.any()


def test_a_following_prompt_that_does_not_fit_is_read_at_the_last_token_that_does_and_counted() -> None:
    episodes = [replace(one, outcome="token_limit") for one in episodes_of()]
    batch = rollout_batch(episodes)
    lengths = [len(episode.segments[-1].token_ids) for episode in episodes]
    fits = sorted(lengths)[2]
    critic = critic_of()
    whole = [value_at(critic, episode.segments[-1].token_ids[:fits]) for episode in episodes]
    critic.trunk.config.max_position_embeddings = fits
    follow = following_prompt(Marks())
    got = bootstrap_values(critic, batch, 10_000, outcomes=("token_limit",), following=follow)
    assert got.num_clipped == sum(length > fits for length in lengths) > 0
    torch.testing.assert_close(got.values, torch.tensor(whole, dtype=torch.float64), atol=2e-6, rtol=1e-5)


def targets_of(batch: RolloutBatch, *, first_only: bool, without: int = -1) -> ValueColumns:
    """Some targets, NaN where there is none; none for one episode, and only a turn's first token if asked."""
    rng = np.random.default_rng(3)
    mask = batch.token_episode != without
    if first_only:
        mask &= batch.token_place == 0
    targets = torch.from_numpy(rng.normal(size=batch.num_tokens))
    old = torch.from_numpy(rng.normal(size=batch.num_tokens))
    targets[~mask] = torch.nan
    return ValueColumns(targets, mask, old)


def value_loss_by_hand(
    critic: Critic, batch: RolloutBatch, columns: ValueColumns, clip: float | None
) -> Tensor:
    """Half the mean square over all targets, each value from a forward pass of its own; with gradient."""
    losses, m = [], 0
    for row in batch.rows:
        for place in np.flatnonzero(row.action_mask):
            if columns.mask[m]:
                ids = torch.from_numpy(row.token_ids[:place]).unsqueeze(0)
                hidden = critic.trunk(input_ids=ids, use_cache=False).last_hidden_state[0, -1]
                value, old, target = (
                    critic.head(hidden).squeeze(),
                    float(columns.old[m]),
                    float(columns.targets[m]),
                )
                error = (value - target) ** 2
                if clip is not None:
                    held = min(max(float(value.detach()), old - clip), old + clip)
                    inside = abs(float(value.detach()) - old) < clip
                    error = torch.maximum(
                        error, (value - target if inside else value * 0 + held - target) ** 2
                    )
                losses.append(0.5 * error)
            m += 1
    return torch.stack(losses).mean()


@pytest.mark.parametrize("budget", [1, 10_000])
@pytest.mark.parametrize("first_only", [True, False])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_the_critics_gradient_is_that_of_half_the_mean_square_over_targets(
    budget: int, first_only: bool, clip: float | None
) -> None:
    batch = rollout_batch(episodes_of())
    columns = targets_of(batch, first_only=first_only, without=0)
    critic, twin = critic_of(), critic_of()
    optimizer = Kept(critic)
    settings = settings_of(value_weight=0.5, tokens_per_batch=budget, critic={"value_clip": clip})
    report = update_critic(critic, batch, columns, settings, optimizer, seed=1, update=0)
    loss = value_loss_by_hand(twin, batch, columns, clip)
    (0.5 * loss).backward()
    assert_near(optimizer.gradients[0], gradient_of(twin), 3e-6)
    assert report.steps == 1 and report.value_loss == pytest.approx(float(loss.detach()), rel=1e-5)


def gradient_of(model: torch.nn.Module) -> Tensor:
    parts = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in model.parameters()]
    return torch.cat(parts).double()


def test_a_critic_without_targets_takes_no_step() -> None:
    batch = rollout_batch(episodes_of())
    critic = critic_of()
    optimizer = Kept(critic)
    none = replace(targets_of(batch, first_only=True), mask=torch.zeros(batch.num_tokens, dtype=torch.bool))
    report = update_critic(critic, batch, none, settings_of(), optimizer, seed=1, update=0)
    assert report.steps == 0 and optimizer.gradients == []


def shared_critic_of(lm: LanguageModel) -> Critic:
    critic = Critic(cast(PreTrainedModel, lm.model.base_model), shares_trunk=True)
    with torch.no_grad():
        critic.head.weight.copy_(torch.linspace(-1, 1, 16))
    return critic


@pytest.mark.parametrize("budget", [1, 10_000])
def test_a_shared_critics_loss_reaches_the_trunk_together_with_the_policys(budget: int) -> None:
    batch = rollout_batch(episodes_of())
    settings = settings_of(value_weight=0.5, tokens_per_batch=budget)
    lm = LanguageModel.of(model_of())
    critic, columns = shared_critic_of(lm), targets_of(batch, first_only=True)
    assert [name for name, _ in critic.named_parameters()] == ["head.weight", "head.bias"]
    policy_steps, head_steps = Kept(lm.model), Kept(critic.head)
    report = update_policy(
        lm, batch, columns_of(batch), settings, policy_steps, temperature=TEMPERATURE, seed=1, update=0,
        shared=SharedCritic(critic, head_steps, columns, trains_policy=True),
    )  # fmt: skip
    twin = LanguageModel.of(model_of())
    twin_critic = shared_critic_of(twin)
    loss = value_loss_by_hand(twin_critic, batch, columns, None)
    (0.5 * loss).backward()
    policy_gradient, policy_loss = brute(batch, settings)
    assert_near(policy_steps.gradients[0], policy_gradient + gradient_of(twin.model), 5e-6)
    assert_near(head_steps.gradients[0], gradient_of(twin_critic.head), 3e-6)
    assert report.policy_loss == pytest.approx(policy_loss, rel=1e-5, abs=1e-6)
    assert report.value_loss == pytest.approx(float(loss.detach()), rel=1e-5)
    assert report.critic_grad_norm == pytest.approx(float(head_steps.gradients[0].norm()))


def test_while_a_shared_critic_warms_up_its_head_learns_alone() -> None:
    batch = rollout_batch(episodes_of())
    lm = LanguageModel.of(model_of())
    critic = shared_critic_of(lm)
    policy_steps, head_steps = Kept(lm.model), Kept(critic.head)
    columns = targets_of(batch, first_only=False)
    report = update_policy(
        lm, batch, columns_of(batch), settings_of(), policy_steps, temperature=TEMPERATURE, seed=1, update=0,
        shared=SharedCritic(critic, head_steps, columns, trains_policy=False),
    )  # fmt: skip
    assert policy_steps.gradients == [] and report.steps == 1 and report.policy_loss == 0
    assert all(param.grad is None for param in lm.model.parameters())
    twin = shared_critic_of(LanguageModel.of(model_of()))
    (0.5 * value_loss_by_hand(twin, batch, columns, None)).backward()
    assert_near(head_steps.gradients[0], gradient_of(twin.head), 3e-6)


@pytest.mark.parametrize("ratio", ["turn", "episode"])
@pytest.mark.parametrize("budget", [1, 40, 10_000])
def test_a_ratio_of_turns_or_episodes_equals_the_definition_however_the_step_is_cut(
    ratio: str, budget: int
) -> None:
    batch = rollout_batch(episodes_of(3))
    rng = np.random.default_rng(1)
    near = current(batch)
    old = (near + torch.from_numpy(rng.normal(scale=0.3, size=len(near)))).float()
    loss = {"ratio": ratio, "clip_low": 0.05, "clip_high": 0.1}
    settings = settings_of(policy_loss=loss, average="episode", tokens_per_batch=budget)
    (got,), report = step_of(batch, columns_of(batch, old=old), settings)
    wanted, value = brute(batch, settings, old=old)
    assert_near(got, wanted, 3e-6)
    assert report.policy_loss == pytest.approx(value, rel=1e-5, abs=1e-6)
    assert 0 < report.clip_share < 1


def test_mismatch_weights_touch_the_policy_term_alone() -> None:
    batch = rollout_batch(episodes_of(3))
    columns = columns_of(batch)
    weights = torch.linspace(0.1, 2.0, batch.num_tokens)
    weighed = replace(columns, mismatch=weights)
    scaled = replace(columns, advantages=columns.advantages * weights)
    settings = settings_of(entropy=0.3)
    (got,), _ = step_of(batch, weighed, settings)
    (wanted,), _ = step_of(batch, scaled, settings)
    assert_near(got, wanted)


def test_units_have_an_id_each() -> None:
    batch = rollout_batch(episodes_of())
    assert unit_ids(batch, "token") is None
    turns, episodes = unit_ids(batch, "turn"), unit_ids(batch, "episode")
    assert turns is not None and episodes is not None
    pairs = list(zip(batch.token_episode.tolist(), batch.token_turn.tolist(), strict=True))
    assert len(set(turns.tolist())) == len(set(pairs)) == len(set(zip(turns.tolist(), pairs, strict=True)))
    assert episodes.tolist() == batch.token_episode.tolist()
