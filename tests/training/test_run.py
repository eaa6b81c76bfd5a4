"""Whole runs of a toy game: folders, stages, refusals, algorithms, and stopping when training collapses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from transformers import AutoModelForCausalLM

import turngym.training.rl
from turngym.agents.agent_config import AgentConfig
from turngym.agents.load import load_agent
from turngym.envs.base import TurnEnv
from turngym.episode_file import read_episodes
from turngym.errors import CheckpointError, CollapseError, ConfigError, InfraError
from turngym.training.checkpoint import load_state
from turngym.training.metrics import MetricValue
from turngym.training.recipe import load_recipe, save_recipe
from turngym.training.rl import check_sampler
from turngym.training.run import Run, sft, train
from turngym.training.run_folder import hold_folder
from turngym.training.settings import RlSettings
from turngym.training.update.policy import PolicyReport
from turngym.training.validation import Validated

ToyRecipe = Callable[..., dict[str, Any]]

SOURCE = Path(__file__).parents[2] / "src"


def rows(run: Run, stage: str) -> list[dict[str, MetricValue]]:
    return [row for row in run.metrics() if row["stage"] == stage]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_run_of_both_stages_fills_its_folder(toy: ToyRecipe, tmp_path: Path) -> None:
    recipe = toy()
    told: list[int] = []
    progress: set[str] = set()
    run = train(
        recipe,
        on_row=lambda row: told.append(int(row["step"])),
        on_progress=lambda what, done, total: progress.add(f"{what} {total}"),
    )
    out = tmp_path / "run"
    assert run == Run(out, out / "final")
    assert told == [row["step"] for row in run.metrics()] == list(range(1, 13))
    assert [(row["stage"], row["update"]) for row in run.metrics()][9:] == [("sft", 10), ("rl", 1), ("rl", 2)]
    assert progress == {"demonstrations 8"}
    assert {path.name for path in out.iterdir()} == {
        "recipe.yaml", "metrics.jsonl", "checkpoints", "sft", "rl", "final", "finished.json",
    }  # fmt: skip
    assert {path.name for path in (out / "sft").iterdir()} == {"demos.jsonl", "final"}
    assert {path.name for path in (out / "rl").iterdir()} == {"episodes.jsonl", "start", "final"}
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] == [
        "step-00000011",
        "step-00000012",
    ]
    assert weights(out / "sft" / "final") == weights(out / "rl" / "start") != weights(out / "final")
    assert (
        weights(out / "rl" / "final")
        == weights(out / "final")
        == weights(out / "checkpoints" / "step-00000012")
    )
    assert len(read_episodes(out / "rl" / "episodes.jsonl")) == 16
    assert json.loads((out / "finished.json").read_text(encoding="utf-8")) == {}


def test_the_final_folder_loads_in_transformers_and_plays(toy: ToyRecipe) -> None:
    run = train(toy(rl=None))
    assert AutoModelForCausalLM.from_pretrained(run.final).config.hidden_size == 32
    config = AgentConfig.load(run.final)
    assert (config.max_new_tokens, config.envs, config.weights_version) == (2, ("toy_env:toy/Signs-v0",), 10)
    assert len(config.trained_tasks) == 8
    for spec in (run.final, run.out):
        assert load_agent(str(spec)).name == str(spec)


def test_a_second_run_with_the_same_seed_is_equal_and_another_seed_is_not(
    toy: ToyRecipe, tmp_path: Path
) -> None:
    finals = [
        weights(train(toy(rl=None), run__out=str(tmp_path / name), run__seed=seed).final)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert finals[0] == finals[1] != finals[2]


def test_a_finished_run_is_not_repeated(toy: ToyRecipe, tmp_path: Path) -> None:
    train(toy(rl=None))
    before = stamps(tmp_path / "run" / "checkpoints") | stamps(tmp_path / "run" / "final")
    told: list[object] = []
    changed = toy(rl=None, keep_checkpoints=5) | {"description": "other words"}
    run = train(changed, on_row=told.append)
    assert told == []
    assert stamps(run.out / "checkpoints") | stamps(run.final) == before


def test_resume_never_starts_over_and_touches_no_file_of_others(toy: ToyRecipe, tmp_path: Path) -> None:
    run = train(toy(rl=None))
    first = weights(run.final)
    (run.out / "notes.txt").write_text("mine", encoding="utf-8")
    again = train(toy(rl=None, seed=2, resume="never"))
    assert weights(again.final) != first
    assert [row["step"] for row in again.metrics()] == list(range(1, 11))
    assert (run.out / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("override", "difference"),
    [
        ("rl.optim.lr=5e-4", "stages.1.rl.optim.lr: 0.001 there, 0.0005 asked"),
        ("run.seed=2", "run.seed: 1 there, 2 asked"),
        ("advantage.credit=episode", "stages.1.rl.advantage.credit: turn there, episode asked"),
        ("advantage=rloo", "stages.1.rl.advantage.credit: turn there, episode asked"),
    ],
)
def test_a_folder_with_another_recipe_is_refused(
    toy: ToyRecipe, tmp_path: Path, override: str, difference: str
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    save_recipe(load_recipe(toy()), out / "recipe.yaml")
    (out / "metrics.jsonl").touch()
    before = stamps(out)
    with pytest.raises(ConfigError) as caught:
        train(toy(), overrides=[override])
    assert str(caught.value) == (
        f"{out} holds a run of another recipe ({difference}). "
        "Choose another folder with run.out=FOLDER, or start over with run.resume=never."
    )
    assert stamps(out) == before


def test_a_folder_of_someone_else_is_refused(toy: ToyRecipe, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work", encoding="utf-8")
    for resume in ("auto", "never"):
        with pytest.raises(ConfigError, match="exists and holds no run of turngym"):
            train(toy(resume=resume))
    assert (tmp_path / "run" / "thesis.tex").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_two_runs_do_not_share_a_folder(toy: ToyRecipe, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for resume in ("auto", "never"):
        with hold_folder(out):
            before = stamps(out)
            with pytest.raises(ConfigError, match=f"Another process is training in {out}. Wait for it"):
                train(toy(rl=None, resume=resume))
            assert stamps(out) == before
        train(toy(rl=None, resume=resume))


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_a_folder_is_free_again_after_its_process_was_killed(toy: ToyRecipe, tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom turngym.training.run_folder import hold_folder\n"
        "with hold_folder(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
            with pytest.raises(ConfigError, match="Another process is training"):
                train(toy(rl=None))
        finally:
            other.kill()
    assert train(toy(rl=None)).final.is_dir()


def test_only_sft_runs_the_sft_stages(toy: ToyRecipe) -> None:
    run = train(toy(), only="sft")
    assert {row["stage"] for row in run.metrics()} == {"sft"}
    assert weights(run.final) == weights(run.out / "sft" / "final")
    with pytest.raises(ConfigError, match="This recipe has no sft stage"):
        sft(toy(sft=None))


def test_without_a_folder_a_run_lies_under_runs(
    toy: ToyRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = toy(rl=None, out="", seed=4)
    assert sft(recipe).out == Path("runs/run-sft-seed4")


@pytest.mark.parametrize("stage", ["sft", "rl"])
def test_tasks_that_are_not_there_stop_the_run_before_it_begins(
    toy: ToyRecipe, tmp_path: Path, stage: str
) -> None:
    with pytest.raises(ConfigError, match=rf"has 40 train tasks, and {stage}\.tasks asks for 50"):
        train(toy(), overrides=[f"{stage}.tasks={{count: 50}}"])
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_an_environment_is_an_id_a_made_one_or_a_factory(
    toy: ToyRecipe, tmp_path: Path, vault: type[TurnEnv]
) -> None:
    def shorter_vault() -> TurnEnv:
        return vault(max_turns=4)

    bigger = {"model__positions": 128, "agent__max_context": 128, "agent__max_new_tokens": 4}
    made = gymnasium.make("toy_env:toy/Signs-v0", max_turns=2)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (made, {}),
        (shorter_vault, bigger),
        ("toy_env:toy/Signs-v0", {}),
    ]
    runs = [
        train(toy(rl=None, out=str(tmp_path / str(place))), env=env, **more)
        for place, (env, more) in enumerate(cases)
    ]
    told = [read_episodes(run.out / "sft" / "demos.jsonl")[0].instructions for run in runs]
    assert [text.partition(" You have ")[2] for text in told] == ["2 turns.", "4 turns.", "3 turns."]


def test_the_best_weights_are_handed_on_where_asked(toy: ToyRecipe, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = toy(rl=None) | {"validation": {"tasks": 4, "every": 1, "keep": "best"}}
    figures = iter([0.25, 0.75, 0.5])
    recipe["stages"][0]["sft"]["steps"] = 3
    seen: list[bytes] = []

    def validate(session: Any) -> Any:
        seen.append(b"".join(p.detach().numpy().tobytes() for p in session.model.parameters()))
        figure = next(figures)
        return Validated(figure, figure, 4)

    monkeypatch.setattr("turngym.training.session.Session.validate", validate)
    run = train(recipe)
    model = AutoModelForCausalLM.from_pretrained(run.final)
    assert b"".join(p.detach().numpy().tobytes() for p in model.parameters()) == seen[1]
    assert AgentConfig.load(run.final).selected_on == "greedy success 0.750 on 4 validation tasks"


BUSY = {"epochs": 2, "minibatches": 2, "entropy": 0.01}
CRITIC = {"optim": {"lr": 1e-3}}


@pytest.mark.parametrize(
    "changes",
    [
        {"advantage": "gae", "critic": CRITIC, "kl": {"name": "reward", "beta": 0.1}, **BUSY},
        {"advantage": {"name": "gae", "credit": "episode"}, "critic": {"warmup_updates": 1}, "average": "turn"},
        {"advantage": "grpo", "kl": {"name": "loss", "beta": 0.1}, "average": "episode"},
        {"advantage": {"name": "grpo", "credit": "turn"}, "kl": {"name": "loss", "beta": 0.1, "estimator": "k3"}, **BUSY},
        {"advantage": {"name": "rloo", "credit": "turn"}, "optim": {"name": "muon"}, "average": "constant"},
        {"advantage": "reinforce", "kl": {"name": "reward", "beta": 0.1}, "save_episodes": False},
    ],
    ids=["ppo", "ppo-episode", "grpo", "grpo-turn", "rloo-turn", "reinforce"],
)  # fmt: skip
def test_every_algorithm_runs_and_its_ledger_balances(toy: ToyRecipe, changes: dict[str, Any]) -> None:
    run = train(toy(), **{f"rl__{key}": value for key, value in changes.items()})
    table = rows(run, "rl")
    assert len(table) == 2
    steps = changes.get("epochs", 1) * changes.get("minibatches", 1)
    for row in table:
        for what in ("episodes", "tokens"):
            dropped = sum(int(v) for k, v in row.items() if k.startswith(f"{what}/dropped_"))
            assert row[f"{what}/played"] == int(row[f"{what}/trained"]) + dropped
        assert row["episodes/asked"] == row["episodes/played"] == 8
        assert float(row["policy/canary_gap"]) <= 1e-3
        assert all(isinstance(value, int | float) for key, value in row.items() if key != "stage")
        if "policy/steps" in row:
            assert row["policy/steps"] == steps
            assert float(row["policy/sampler_gap_max"]) < 1e-3
            assert ("kl/k1" in row and "kl/k3" in row) == ("kl" in changes)
    assert any("policy/steps" in row for row in table)
    assert all(("loss/value" in row) == ("gae" in str(changes["advantage"])) for row in table)
    assert (run.out / "rl" / "episodes.jsonl").exists() == changes.get("save_episodes", True)
    assert (
        load_state(run.out / "checkpoints" / f"step-{table[-1]['step']:08d}").totals["episodes"]["asked"]
        == 16
    )


def test_the_samplers_log_probs_may_stand_for_the_trainers(toy: ToyRecipe, tmp_path: Path) -> None:
    own = train(toy(), rl__epochs=2)
    borrowed = train(toy(out=str(tmp_path / "borrowed")), rl__epochs=2, rl__old_log_probs="sampler")
    for one, other in zip(rows(own, "rl"), rows(borrowed, "rl"), strict=True):
        assert float(other["policy/sampler_gap_max"]) < 1e-4
        assert one["policy/approx_kl"] == pytest.approx(other["policy/approx_kl"], abs=1e-4)


def test_a_sampler_that_differs_stops_the_run() -> None:
    settings = RlSettings.model_validate({"updates": 1, "advantage": "rloo", "old_log_probs": "sampler"})
    report = PolicyReport(0, 0, 0, 0, 0, 0, 0, 0, 2e-4, None, None, None, None, 1)
    with pytest.raises(InfraError, match="up to 0.0002"):
        check_sampler(report, settings)
    check_sampler(replace(report, sampler_gap_max=5e-5), settings)


def test_while_the_critic_warms_up_the_policy_stays(toy: ToyRecipe) -> None:
    run = train(toy(), rl__advantage="gae", rl__critic={"warmup_updates": 2})
    assert weights(run.final) == weights(run.out / "rl" / "start")
    assert all("loss/value" in row and "policy/steps" not in row for row in rows(run, "rl"))


@pytest.mark.parametrize("credit", ["turn", "token", "bilevel", "episode"])
@pytest.mark.parametrize("shared", [False, True])
def test_every_credit_trains_policy_and_critic(toy: ToyRecipe, credit: str, shared: bool) -> None:
    gae = {"name": "gae", "credit": credit}
    run = train(toy(), rl__advantage=gae, rl__critic={"shared": shared}, rl__groups=16)
    assert weights(run.final) != weights(run.out / "rl" / "start")
    for row in rows(run, "rl"):
        assert float(row["critic/grad_norm"]) > 0 and float(row["policy/grad_norm"]) > 0
        assert float(row["loss/value"]) > 0 and float(row["advantage/std"]) > 0.5


def test_while_a_shared_critic_warms_up_the_policy_stays(toy: ToyRecipe) -> None:
    critic = {"warmup_updates": 2, "shared": True}
    run = train(toy(), rl__advantage="gae", rl__critic=critic)
    assert weights(run.final) == weights(run.out / "rl" / "start")
    assert all("loss/value" in row and "policy/steps" not in row for row in rows(run, "rl"))


def test_a_shared_critic_is_refused_on_a_model_whose_hidden_states_cannot_be_read(
    toy: ToyRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.agents.language_model.PROBE_TOLERANCE", -1.0)
    with pytest.raises(ConfigError, match="Set critic.shared=false"):
        train(toy(), rl__advantage="gae", rl__critic={"shared": True})


def test_a_reference_follows_the_policy_where_it_is_told_to(toy: ToyRecipe) -> None:
    kl = {"name": "loss", "beta": 1e-3}
    stays = train(toy(), rl__kl=kl, rl__updates=4)
    follows = train(toy(out=f"{stays.out}-2"), rl__kl={**kl, "update_every": 1}, rl__updates=4)
    # Right after it took the policy's weights there is no distance left before the next update's first step.
    assert all(abs(float(row["kl/k3"])) < 1e-9 for row in rows(follows, "rl"))
    assert float(rows(stays, "rl")[-1]["kl/k3"]) > 1e-9


def test_mismatch_weights_are_near_1_with_an_engine_of_the_same_numbers(toy: ToyRecipe) -> None:
    run = train(toy(), rl__mismatch={"name": "truncate", "unit": "episode"})
    assert all(float(row["policy/mismatch_weight"]) == pytest.approx(1, abs=1e-4) for row in rows(run, "rl"))


def test_the_critic_starts_by_saying_nothing(toy: ToyRecipe) -> None:
    # All values are 0 before the first step, so no variance is explained.
    run = train(toy(), rl__advantage="gae", rl__updates=1)
    assert float(rows(run, "rl")[0]["critic/explained_variance"]) == pytest.approx(0.0, abs=1e-9)


def test_a_collapse_stops_the_run_and_names_a_checkpoint_that_exists(toy: ToyRecipe, tmp_path: Path) -> None:
    with pytest.raises(CollapseError) as caught:
        train(toy(), rl__updates=9, rl__guard={"min_entropy": 50.0})
    # The alarm is on from the first update, so nothing is saved after the start of the stage.
    named = Path(str(caught.value).partition("The last good checkpoint is ")[2].partition(". ")[0])
    assert named == tmp_path / "run" / "rl" / "start"
    assert weights(named) == weights(tmp_path / "run" / "sft" / "final")
    assert not (tmp_path / "run" / "finished.json").exists()
    table = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in table if row["stage"] == "rl"] == [1, 2, 3]


def poison(after: int) -> Callable[..., Any]:
    """A forward pass whose results are NaN after so many calls."""
    right, calls = turngym.training.rl.train_on, [0]

    def train_on(session: Any, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] <= after:
            return right(session, *arguments)
        handle = session.model.get_output_embeddings().register_forward_hook(
            lambda *call: call[2] * float("nan")
        )
        try:
            return right(session, *arguments)
        finally:
            handle.remove()

    return train_on


def test_a_gradient_that_is_no_number_changes_no_weight(
    toy: ToyRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turngym.training.rl, "train_on", poison(after=1))
    with pytest.raises(CollapseError, match="the gradient's norm is nan") as caught:
        train(toy(), rl__updates=3, rl__epochs=2)
    good = tmp_path / "run" / "checkpoints" / "step-00000011"
    assert f"The last good checkpoint is {good}." in str(caught.value)
    model = AutoModelForCausalLM.from_pretrained(good)
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_sft_stops_where_the_loss_is_no_number(toy: ToyRecipe, tmp_path: Path) -> None:
    with pytest.raises(CollapseError, match=r"the gradient's norm is (nan|inf) at step 1 of sft") as caught:
        train(toy(rl=None), sft__text_weight=1e38, sft__optim={"lr": 1.0})
    named = Path(str(caught.value).partition("The last good checkpoint is ")[2].partition(". ")[0])
    assert load_state(named).step == 0


def test_other_threads_are_refused_on_resumption(toy: ToyRecipe) -> None:
    run = train(toy(rl=None))
    (run.out / "finished.json").unlink()
    with pytest.raises(CheckpointError) as caught:
        train(toy(rl=None, threads=2))
    assert str(caught.value).endswith(
        "was written with run.threads=1, now 2: the last bits would differ. Resume with run.threads=1."
    )
