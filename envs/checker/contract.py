"""Checks of the contract between an environment and its callers."""

import dataclasses
import json
import re
import warnings
from typing import Any

from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as check_gymnasium_env

from turngym.envs.base import TurnEnv
from turngym.envs.checker.report import Finding, fail, fault, ok, warn
from turngym.envs.checker.subject import JUNK_WORDS, Subject, start, wander
from turngym.errors import TaskError
from turngym.types import TurnInfo

RESET_KEYS = frozenset(field.name for field in dataclasses.fields(TurnInfo))
STEP_KEYS = RESET_KEYS - {"instructions", "tools"}

_TYPES: dict[str, tuple[type, ...]] = {
    "task": (str,),
    "turn": (int,),
    "score": (float,),
    "max_score": (float,),
    "success": (bool,),
    "outcome": (str,),
    "valid": (bool,),
    "admissible": (list, type(None)),
    "state_key": (str,),
    "start_key": (str,),
    "messages": (list,),
    "instructions": (str,),
    "tools": (list,),
}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def check_gymnasium(subject: Subject) -> Finding:
    """Gymnasium's own checker finds nothing to say (rendering aside: the episode file is our picture)."""
    env = subject.make()
    # Gymnasium plays one turn and takes the turn limit of a one-turn environment for a mistake.
    env.max_turns = max(env.max_turns, 2)
    step = "See https://gymnasium.farama.org/introduction/create_custom_env/."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_gymnasium_env(env, skip_render_check=True)
        except AssertionError as error:
            return fail(_COLOUR.sub("", str(error)), step)
    if caught:
        return warn(" | ".join(_COLOUR.sub("", str(one.message)) for one in caught), step)
    return ok("gymnasium.utils.env_checker.check_env has nothing to say")


def check_info(subject: Subject) -> Finding:
    """`info` has exactly the keys of TurnInfo, of their types, and goes into JSON as it is."""
    env, answers = subject.make(), 0
    for task in subject.few_tasks:
        commands = wander(env, task, subject.seed).commands
        infos = [env.reset(seed=subject.seed, options={"task": task})[1]]
        infos += [env.step(command)[4] for command in commands]
        answers += len(infos)
        for turn, info in enumerate(infos):
            wrong = _wrong_info(info, RESET_KEYS if turn == 0 else STEP_KEYS)
            if wrong:
                return fail(f"task {task!r}, turn {turn}: {wrong}", "Leave info to the base class.")
    return ok(f"{answers} infos of {len(subject.few_tasks)} tasks have the keys and types of TurnInfo")


def _wrong_info(info: dict[str, Any], keys: frozenset[str]) -> str:
    if info.keys() != keys:
        return f"keys missing {sorted(keys - info.keys())}, keys too many {sorted(info.keys() - keys)}"
    for key, value in info.items():
        if type(value) not in _TYPES[key]:
            return f"{key} is a {type(value).__name__}, not a {_TYPES[key][0].__name__}"
    try:
        json.dumps(info, allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"JSON cannot hold it ({error})"
    return ""


def check_endings(subject: Subject) -> Finding:
    """Nothing is played before the reset or after the end, and the turn limit truncates."""
    env, limits = subject.make(), 0
    rule = "Leave step, the turn limit and the outcome to the base class."
    if _is_playable(env):
        return fail("step before the first reset raised no ResetNeeded", rule)
    for task in subject.few_tasks:
        start(env, task, subject.seed)
        turns, terminated, truncated = 0, False, False
        while not (terminated or truncated) and turns < env.max_turns:
            _, _, terminated, truncated, info = env.step(JUNK_WORDS[0])
            turns += 1
        if not (terminated or truncated):
            return fail(f"task {task!r}: still running after {env.max_turns} turns (max_turns)", rule)
        if _is_playable(env):
            return fail(f"task {task!r}: step after the end raised no ResetNeeded", rule)
        if truncated == terminated or truncated != (info["outcome"] == "turn_limit"):
            return fail(
                f"task {task!r}: {info['outcome']} with terminated={terminated}, truncated={truncated}", rule
            )
        if truncated and (turns != env.max_turns or info["success"]):
            return fail(f"task {task!r}: truncated at turn {turns} of {env.max_turns}", rule)
        limits += truncated
    return ok(f"{limits} of {len(subject.few_tasks)} episodes of one junk word ran into the turn limit")


def _is_playable(env: TurnEnv) -> bool:
    try:
        env.step(JUNK_WORDS[0])
    except ResetNeeded:
        return False
    return True


def check_task_ids(subject: Subject) -> Finding:
    """A task id that is none raises TaskError."""
    env = subject.make()
    good = subject.few_tasks[0]
    taken = []
    for bad in ("no such task", "", "-1", f"{good} ", f"x{good}", f"{good}/9", "../etc", "9" * 5000):
        try:
            env.reset(seed=subject.seed, options={"task": bad})
        except TaskError:
            continue
        except Exception as error:  # noqa: BLE001 - the border to the author's code
            return fail(
                fault(error, f"loading task {bad[:40]!r}", strict=subject.strict).detail,
                "Raise turngym.errors.TaskError in load for an id that is not yours.",
            )
        taken.append(bad[:40])
    if taken:
        return warn(f"load takes {taken}", "Raise TaskError: a mistyped id should not play another task.")
    return ok("wrong task ids raise TaskError")


def check_instructions(subject: Subject) -> Finding:
    """There are instructions, and they leave the turn limit to the base, which tells it."""
    env = subject.make()
    for task in subject.few_tasks:
        start(env, task, subject.seed)
        if not env.instructions.strip():
            return warn(
                f"task {task!r} has no instructions", "Say in `instructions` what the agent is to do."
            )
        told = re.search(rf"\b{env.max_turns} (turns?|steps?|moves?|commands?)\b", env.instructions)
        if told:
            return warn(
                f"the instructions say {told[0]!r}, and the base adds the turn limit itself",
                "Leave the limit out: it changes with the argument max_turns.",
            )
    return ok("there are, and the base class alone tells the turn limit")
