"""Checkpoints: Hugging Face folders with the trainer's state beside, whole or not there at all."""

import json
import os
import pickle
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from turngym.agents.agent_config import AgentConfig
from turngym.config import Settings
from turngym.errors import CheckpointError

_NAME = re.compile(r"step-(\d+)")
_DONE = "complete.json"
_ASIDE = ".old.tmp"


class TrainerState(Settings):
    """Where a run stands. Every stream of chance is named by these counters, so they restore all of it."""

    format: Literal[1] = 1
    step: int = 0
    """Updates done, over all stages."""
    stage: int = 0
    """Stage under way."""
    stage_updates: int = 0
    """Updates done in it."""
    cursors: dict[str, int] = {}
    """Tasks drawn so far, per environment."""
    trained_tasks: list[str] = []
    """Keys of tasks trained on."""
    totals: dict[str, dict[str, int]] = {}
    """The ledger, summed over the run."""
    best: float = -1.0
    """Best greedy validation success of the stage so far."""
    guard: dict[str, int] = {}
    """How many updates in a row each alarm has been on."""
    threads: int = 1
    """Torch threads; another number would change the last bits."""
    seconds: float = 0.0
    """Wall time of training so far."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """What belongs in a checkpoint beside policy and state."""

    optimizer: list[dict[str, Any]] = field(default_factory=list)
    critic: nn.Module | None = None
    critic_optimizer: list[dict[str, Any]] = field(default_factory=list)
    reference: nn.Module | None = None
    """Only where it is no longer the policy that the stage began with."""


def save_model(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, config: AgentConfig
) -> None:
    """Writes a folder that transformers, vLLM and `turngym bench` load; it appears whole or not at all."""
    beside = _beside(folder)
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    config.save(beside)
    _put_in_place(beside, folder)


def save_checkpoint(
    root: Path,
    state: TrainerState,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    config: AgentConfig,
    tensors: Tensors,
    *,
    keep: int,
) -> Path:
    """Writes `root/step-N` beside and renames it, then removes all but the newest `keep`."""
    folder = root / f"step-{state.step:08d}"
    beside = _beside(folder)
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    config.save(beside)
    torch.save(
        {
            "optimizer": tensors.optimizer,
            "critic": tensors.critic.state_dict() if tensors.critic is not None else None,
            "critic_optimizer": tensors.critic_optimizer,
            "reference": tensors.reference.state_dict() if tensors.reference is not None else None,
        },
        beside / "trainer.pt",
    )
    (beside / "trainer_state.json").write_text(state.model_dump_json(indent=1), encoding="utf-8")
    (beside / _DONE).write_text(json.dumps({"step": state.step}), encoding="utf-8")
    _put_in_place(beside, folder)
    for old in sorted(_complete(root), key=_number)[:-keep]:
        shutil.rmtree(old)
    return folder


def newest_checkpoint(root: Path) -> tuple[Path | None, list[str]]:
    """The complete checkpoint of the highest number, and names of the incomplete ones passed over."""
    if not root.is_dir():
        return None, []
    complete = _complete(root)
    skipped = [
        e.name for e in root.iterdir() if e.is_dir() and e not in complete and e.name.startswith("step-")
    ]
    return (max(complete, key=_number) if complete else None), sorted(skipped)


def load_state(folder: Path) -> TrainerState:
    """The trainer's state in a checkpoint.

    Raises:
        CheckpointError: it is damaged.
    """
    try:
        return TrainerState.model_validate_json((folder / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise CheckpointError(
            f"{folder} has no readable trainer state. Remove the folder to use an older one."
        ) from error


def load_tensors(folder: Path) -> dict[str, Any]:
    """Optimizer and critic states in a checkpoint.

    Raises:
        CheckpointError: they are damaged.
    """
    try:
        loaded: dict[str, Any] = torch.load(folder / "trainer.pt", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(
            f"{folder / 'trainer.pt'} does not load. Remove the folder {folder.name} to use an older checkpoint."
        ) from error
    return loaded


def clean_half_written(root: Path) -> None:
    """Removes folders that a killed writer left, and puts back what it had moved aside."""
    if root.is_dir():
        for entry in sorted(root.iterdir()):
            if entry.is_dir() and entry.name.endswith(".tmp"):
                aside = root / entry.name.removesuffix(_ASIDE)
                if entry.name.endswith(_ASIDE) and not aside.exists():
                    entry.rename(aside)
                else:
                    shutil.rmtree(entry)


def _complete(root: Path) -> list[Path]:
    return [e for e in root.iterdir() if e.is_dir() and _NAME.fullmatch(e.name) and (e / _DONE).is_file()]


def _number(folder: Path) -> int:
    found = _NAME.fullmatch(folder.name)
    return int(found[1]) if found else -1


def _beside(folder: Path) -> Path:
    beside = folder.with_name(f"{folder.name}.tmp")
    if beside.exists():
        shutil.rmtree(beside)
    beside.mkdir(parents=True)
    return beside


def _put_in_place(beside: Path, folder: Path) -> None:
    """Renames a written folder into place, after its bytes are on the disk."""
    for path in beside.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    old = folder.with_name(f"{folder.name}{_ASIDE}")
    if old.exists() and not folder.exists():
        old.rename(folder)
    elif old.exists():
        shutil.rmtree(old)
    if folder.exists():
        folder.rename(old)
    beside.rename(folder)
    if old.exists():
        shutil.rmtree(old)
