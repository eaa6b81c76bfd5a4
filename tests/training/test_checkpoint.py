"""Checkpoints are whole or not there, and the newest complete one is found by number."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from turngym.agents.agent_config import AgentConfig
from turngym.agents.load import load_model
from turngym.agents.tiny import build_model, build_tokenizer
from turngym.errors import CheckpointError
from turngym.training.checkpoint import (
    Tensors,
    TrainerState,
    clean_half_written,
    load_state,
    load_tensors,
    newest_checkpoint,
    save_checkpoint,
    save_model,
)

STATE = TrainerState(
    step=3, stage=1, stage_updates=2, cursors={"0": 5}, trained_tasks=["ab"], best=0.5, seconds=1.5
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(["red blue green"])


@pytest.fixture(scope="module")
def model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return build_model(tokenizer, hidden=8, layers=1, heads=2, ff=8, positions=32, seed=1)


class Saver:
    """Saves checkpoints of one model."""

    def __init__(self, root: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
        self.root, self.model, self.tokenizer = root, model, tokenizer

    def __call__(self, step: int, *, keep: int = 9, tensors: Tensors | None = None) -> Path:
        return save_checkpoint(
            self.root,
            STATE.model_copy(update={"step": step}),
            self.model,
            self.tokenizer,
            AgentConfig(),
            tensors or Tensors(),
            keep=keep,
        )


@pytest.fixture
def save(tmp_path: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> Saver:
    return Saver(tmp_path / "checkpoints", model, tokenizer)


def folders(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_a_checkpoint_gives_back_weights_state_and_tensors(save: Saver) -> None:
    optimizer = torch.optim.AdamW(save.model.parameters(), lr=0.0)
    save.model(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    optimizer.step()
    critic = torch.nn.Linear(2, 1)
    folder = save(3, tensors=Tensors([optimizer.state_dict()], critic, []))
    assert load_state(folder) == STATE
    tensors = load_tensors(folder)
    assert torch.equal(tensors["critic"]["weight"], critic.weight)
    moments = [one["exp_avg"] for one in optimizer.state_dict()["state"].values()]
    loaded = [one["exp_avg"] for one in tensors["optimizer"][0]["state"].values()]
    assert moments and all(torch.equal(a, b) for a, b in zip(moments, loaded, strict=True))
    again, words = load_model(folder)
    assert words.get_vocab() == save.tokenizer.get_vocab()
    assert all(torch.equal(a, b) for a, b in zip(save.model.parameters(), again.parameters(), strict=True))
    assert AgentConfig.load(folder) == AgentConfig()


def test_loaded_weights_give_the_same_bits_as_those_saved(save: Saver) -> None:
    # Products of one row take another path, with other last bits, where weights lie at an odd address.
    again, _ = load_model(save(1))
    assert {parameter.data_ptr() % 64 for parameter in again.parameters()} == {0}
    ids = torch.tensor([[7]])
    assert torch.equal(save.model(input_ids=ids).logits, again(input_ids=ids).logits)


# Case 54.
def test_the_newest_complete_checkpoint_is_found_by_number(tmp_path: Path) -> None:
    complete = {"step-200": True, "step-1000": True, "step-900": True, "step-1200": False, "step-0950": True}
    for name, is_complete in (complete | {"best": True, "step-1300.tmp": True, "step-x": True}).items():
        (tmp_path / name).mkdir()
        if is_complete:
            (tmp_path / name / "complete.json").write_text("{}", encoding="utf-8")
    os.utime(tmp_path / "step-200")
    (tmp_path / "step-9999").write_text("a file", encoding="utf-8")
    newest, skipped = newest_checkpoint(tmp_path)
    assert newest == tmp_path / "step-1000"
    assert skipped == ["step-1200", "step-1300.tmp", "step-x"]


def test_without_checkpoints_there_is_no_newest(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "none") == (None, [])
    assert newest_checkpoint(tmp_path) == (None, [])


def test_only_the_newest_few_stay(save: Saver) -> None:
    for step in (2, 10, 9):
        save(step, keep=2)
    assert folders(save.root) == ["step-00000009", "step-00000010"]


class DiskFull(OSError):
    """Raised by the save below."""


def test_a_writer_that_dies_leaves_the_older_checkpoint_the_newest(
    save: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(1)

    def breaks(*_: object, **__: object) -> None:
        raise DiskFull

    monkeypatch.setattr(torch, "save", breaks)
    for step in (1, 2):
        with pytest.raises(DiskFull):
            save(step)
    newest, skipped = newest_checkpoint(save.root)
    assert newest == save.root / "step-00000001"
    assert skipped == ["step-00000001.tmp", "step-00000002.tmp"]
    assert load_state(newest).step == 1
    clean_half_written(save.root)
    assert folders(save.root) == ["step-00000001"]


def test_a_checkpoint_of_the_same_step_is_replaced(save: Saver) -> None:
    save(1)
    save(1, tensors=Tensors([{"state": {}}]))
    assert folders(save.root) == ["step-00000001"]
    assert load_tensors(save.root / "step-00000001")["optimizer"] == [{"state": {}}]


@pytest.mark.parametrize("beside", [True, False])
def test_a_checkpoint_moved_aside_when_the_writer_died_is_put_back(save: Saver, beside: bool) -> None:
    folder = save(1)
    if beside:
        shutil.copytree(folder, folder.with_name(f"{folder.name}.tmp"))
    folder.rename(folder.with_name(f"{folder.name}.old.tmp"))
    clean_half_written(save.root)
    assert newest_checkpoint(save.root) == (folder, [])
    assert folders(save.root) == [folder.name]


def test_a_folder_of_weights_is_replaced_whole(save: Saver, tmp_path: Path) -> None:
    folder = tmp_path / "best"
    for note in ("first", "second"):
        save_model(folder, save.model, save.tokenizer, AgentConfig(selected_on=note))
    assert AgentConfig.load(folder).selected_on == "second"
    assert folders(tmp_path) == ["best"]


@pytest.mark.parametrize("text", ["", "{", '{"step": "x"}', '{"format": 2}', '{"steps": 1}'])
def test_a_damaged_state_is_an_error_that_names_the_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "trainer_state.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="has no readable trainer state. Remove the folder") as caught:
        load_state(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"PK half", b"\x80\x02K\x01"])
def test_damaged_tensors_are_an_error_that_names_the_file(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "trainer.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match="trainer.pt does not load. Remove the folder"):
        load_tensors(tmp_path)
