"""Agents by specification: a checkpoint folder, `expert`, `noisy-expert` or `random`."""

from pathlib import Path
from typing import TYPE_CHECKING

from turngym.agents.base import Agent
from turngym.agents.scripted import ExpertAgent, NoisyExpertAgent, RandomAgent
from turngym.errors import CheckpointError, ConfigError, suggest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from turngym.agents.agent_config import AgentConfig
    from turngym.agents.engines.base import Engine
    from turngym.agents.policy import PolicyAgent

SCRIPTED: dict[str, type[ExpertAgent] | type[RandomAgent]] = {
    "expert": ExpertAgent,
    "noisy-expert": NoisyExpertAgent,
    "random": RandomAgent,
}


def is_scripted(spec: str) -> bool:
    """Whether a specification names an agent without a model, which has no greedy and sampled form."""
    return spec in SCRIPTED


def load_agent(spec: str, *, greedy: bool = False, device: str = "cpu") -> Agent:
    """The agent behind a specification.

    Args:
        spec: name of a scripted agent, or a checkpoint folder.
        greedy: play the most likely token; otherwise sample at the checkpoint's own temperature.

    Raises:
        CheckpointError: the folder is absent or no checkpoint of turngym.
        ConfigError: neither a name nor a folder.
    """
    if spec in SCRIPTED:
        return SCRIPTED[spec]()
    folder = checkpoint_folder(spec)
    from turngym.agents.agent_config import AgentConfig
    from turngym.agents.engines.local import LocalEngine

    config = AgentConfig.load(folder)
    model, tokenizer = load_model(folder, device=device)
    engine = LocalEngine(model, version=config.weights_version)
    return policy_agent(
        engine, tokenizer, config, name=spec, temperature=0.0 if greedy else config.temperature
    )


def checkpoint_folder(spec: str) -> Path:
    """The checkpoint folder of a specification; a run's folder stands for its last stage's result.

    Raises:
        ConfigError, CheckpointError: nothing of that name.
    """
    folder = Path(spec)
    if folder.is_dir():
        return folder / "final" if (folder / "final").is_dir() else folder
    if "/" in spec or folder.exists():
        raise CheckpointError(f"No checkpoint folder {spec!r}. Give a folder that `turngym train` wrote.")
    raise ConfigError(f"No agent {spec!r}. {suggest(spec, SCRIPTED)} Or give a checkpoint folder.")


def load_model(folder: Path, *, device: str = "cpu") -> "tuple[PreTrainedModel, PreTrainedTokenizerFast]":
    """Model and tokenizer of a Hugging Face folder, in float32 and offline.

    Raises:
        CheckpointError: the folder does not load.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(
            f"{folder} does not load as a model: {reason} Give a complete checkpoint."
        ) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise CheckpointError(f"{folder} has a slow tokenizer. Save it with a tokenizer.json.")
    model.to(device)  # type: ignore[arg-type]  # transformers wraps `to` without its types
    for parameter in model.parameters():
        # Loaded weights lie where the file has them; the last bits of a product depend on their alignment.
        parameter.data = parameter.data.clone()
    return model, tokenizer


def policy_agent(
    engine: "Engine",
    tokenizer: "PreTrainedTokenizerFast",
    config: "AgentConfig",
    *,
    name: str,
    temperature: float,
) -> "PolicyAgent":
    """A policy that plays as `config` says, at a temperature (0 is greedy)."""
    from turngym.agents.action_formats import action_format
    from turngym.agents.chat_template import PlainTemplate
    from turngym.agents.policy import PolicyAgent

    template = PlainTemplate(tokenizer)
    return PolicyAgent(
        engine,
        template,
        template.codec,
        action_format(config.action_format),
        name=name,
        temperature=temperature,
        max_new_tokens=config.max_new_tokens,
        max_context=config.max_context,
        trained_tasks=config.trained_tasks,
        selected_on=config.selected_on,
    )
