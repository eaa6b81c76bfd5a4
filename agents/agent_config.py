"""`turngym_agent.json`: how a checkpoint plays, written beside its weights."""

import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from turngym.config import Settings, explain
from turngym.errors import CheckpointError

FILE_NAME = "turngym_agent.json"


class AgentConfig(Settings):
    """Everything about an agent that its weights do not say."""

    format: Literal[1] = 1
    template: str = "plain"
    action_format: str = "plain"
    context: str = "full"
    temperature: float = 1.0
    max_new_tokens: int = 16
    max_context: int = 1024
    envs: tuple[str, ...] = ()
    """Environment ids, with versions, that it was trained on."""
    trained_tasks: tuple[str, ...] = ()
    """Keys (`turngym.agents.policy.task_key`) of the tasks it was trained on."""
    weights_version: int = 0
    """Updates that the weights have seen."""
    selected_on: str = "nothing: the last weights"
    """What the checkpoint was chosen by."""

    def save(self, folder: Path) -> None:
        """Writes the file into a checkpoint folder."""
        (folder / FILE_NAME).write_text(json.dumps(self.model_dump(mode="json"), indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "AgentConfig":
        """Reads the file of a checkpoint folder.

        Raises:
            CheckpointError: no folder, no such file in it, or a damaged one.
        """
        if not folder.is_dir():
            raise CheckpointError(
                f"No checkpoint folder {str(folder)!r}. Give a folder that `turngym train` wrote."
            )
        path = folder / FILE_NAME
        if not path.is_file():
            raise CheckpointError(
                f"{folder} holds no {FILE_NAME}, so how the model plays is not known. Give a checkpoint of turngym."
            )
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise CheckpointError(
                f"{explain(cls, error, source=str(path))} Give a complete checkpoint."
            ) from error
