"""The recipe's own checks: what has no effect, or cannot work, is refused before anything runs."""

from typing import Any

import pytest
from pydantic import ValidationError

from turngym.config import REGISTRIES, Settings
from turngym.training.settings import KlSettings, OptimSettings, Recipe, RlSettings, Stage


def rl(**more: Any) -> RlSettings:
    return RlSettings.model_validate({"updates": 1, "advantage": "grpo", **more})


def recipe(*stages: dict[str, Any]) -> Recipe:
    return Recipe.model_validate({"envs": [{"id": "Rooms-v0"}], "stages": list(stages)})


def test_a_stage_is_of_exactly_one_kind() -> None:
    both = {"sft": {"steps": 1}, "rl": {"updates": 1, "advantage": "grpo"}}
    for stage in ({}, both):
        with pytest.raises(ValidationError, match="either `sft: ...` or `rl: ...`"):
            Stage.model_validate(stage)


@pytest.mark.parametrize("name", ["run", "final", "checkpoints", "envs", "a/b", "..", "a.b", "", "a b"])
def test_a_stage_whose_name_would_be_another_folder_or_key_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="a stage cannot be called"):
        recipe({"sft": {"steps": 1, "name": name}})
    assert recipe({"sft": {"steps": 1, "name": "warm-up_2"}}).stages[0].settings.name == "warm-up_2"


def test_a_run_needs_an_environment_and_a_stage() -> None:
    with pytest.raises(ValidationError, match="envs"):
        Recipe.model_validate({"envs": [], "stages": [{"sft": {"steps": 1}}]})
    with pytest.raises(ValidationError, match="stages"):
        recipe()


@pytest.mark.parametrize("kl", [{"name": "loss"}, {"name": "reward", "beta": 0}, {"beta": 0.1}])
def test_a_kl_without_effect_is_refused(kl: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match=r"has no effect\. Set both, as in kl\.name=loss kl\.beta=0\.01"
    ):
        rl(kl=kl)
    assert rl(kl={"name": "loss", "beta": 0.1}).kl == KlSettings(name="loss", beta=0.1)


def test_a_kl_by_the_k1_estimator_is_refused() -> None:
    with pytest.raises(ValidationError, match="'k2' or 'k3'"):
        rl(kl={"name": "loss", "beta": 0.1, "estimator": "k1"})


# Case 9: a group of one has no baseline.
@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_one_episode_per_task_is_refused_for_group_estimators(name: str) -> None:
    with pytest.raises(ValidationError, match=r"compares the members of a group, and group_size is 1\. Set"):
        rl(advantage=name, group_size=1)
    for other in ("gae", "reinforce"):
        assert rl(advantage=other, group_size=1).group_size == 1


def test_an_explicit_bootstrap_without_a_critic_is_refused() -> None:
    with pytest.raises(
        ValidationError, match="truncation: bootstrap needs a critic, and advantage grpo has none"
    ):
        rl(truncation="bootstrap")
    assert rl(advantage="gae", truncation="bootstrap").truncation == "bootstrap"


@pytest.mark.parametrize("changes", [{"advantage": "grpo"}, {"advantage": "gae", "truncation": "terminal"}])
def test_a_bootstrap_of_the_turn_limit_without_effect_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="bootstrap_turn_limit has no effect"):
        rl(bootstrap_turn_limit=True, **changes)
    assert rl(bootstrap_turn_limit=True, advantage="gae").bootstrap_turn_limit


@pytest.mark.parametrize("unit", ["turn", "episode"])
def test_a_ratio_over_many_tokens_needs_clip_ranges_of_its_own(unit: str) -> None:
    with pytest.raises(ValidationError, match=f"ratio: {unit} needs clip_high of its own"):
        rl(advantage="grpo", policy_loss={"ratio": unit, "clip_low": 3e-4})
    given = rl(advantage="grpo", policy_loss={"ratio": unit, "clip_low": 3e-4, "clip_high": 4e-4})
    assert (given.policy_loss.ratio, given.policy_loss.clip_high) == (unit, 4e-4)


@pytest.mark.parametrize(
    ("kl", "told"),
    [
        ({"update_every": 5}, "update_every has no effect with name: none"),
        (
            {"name": "loss", "beta": 0.1, "update_share": 0.5},
            "update_share has no effect without update_every",
        ),
    ],
)
def test_updates_of_a_reference_without_effect_are_refused(kl: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        rl(advantage="grpo", kl=kl)


def test_mismatch_weights_need_the_trainers_own_log_probs() -> None:
    with pytest.raises(ValidationError, match="Set old_log_probs: trainer"):
        rl(advantage="grpo", mismatch="truncate", old_log_probs="sampler")
    assert rl(advantage="grpo", mismatch={"name": "truncate", "unit": "turn"}).mismatch.cap == 2.0


def test_sampling_temperature_zero_is_refused_for_training() -> None:
    with pytest.raises(ValidationError, match="temperature"):
        Recipe.model_validate(
            {"envs": [{"id": "x"}], "stages": [{"sft": {"steps": 1}}], "agent": {"temperature": 0}}
        )


def test_settings_cannot_be_changed_after_loading() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        OptimSettings().lr = 1.0  # type: ignore[misc]


def test_an_advantage_keeps_its_own_settings_through_a_dump() -> None:
    settings = rl(advantage={"name": "gae", "lam": 0.5})
    assert settings.model_dump(mode="json")["advantage"]["lam"] == 0.5
    assert RlSettings.model_validate(settings.model_dump(mode="json")) == settings


def settings_models() -> list[type[Settings]]:
    found: list[type[Settings]] = []
    waiting = [Settings]
    while waiting:
        for model in waiting.pop().__subclasses__():
            if model.__module__.startswith("turngym.training.") and model.__name__ != "TrainerState":
                found.append(model)
            waiting.append(model)
    return found


@pytest.mark.parametrize("model", settings_models(), ids=lambda model: model.__name__)
def test_every_setting_says_what_it_means(model: type[Settings]) -> None:
    assert model.__doc__
    assert [key for key, field in model.model_fields.items() if not field.description and key != "name"] == []


def test_every_registered_advantage_has_a_summary() -> None:
    registry = REGISTRIES["advantage"]
    assert {"gae", "grpo", "reinforce", "rloo"} <= set(registry.names())
    assert all(registry[name].summary for name in ("gae", "grpo", "reinforce", "rloo"))
