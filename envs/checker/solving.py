"""Checks of tasks, expert and rewards: what a trainer relies on."""

import itertools
import math
from collections.abc import Sequence

from turngym.envs.base import UNSOLVED_PROGRESS_CAP, Reward, TurnEnv
from turngym.envs.checker.report import Finding, fail, ok, warn
from turngym.envs.checker.subject import Attempt, Subject, demonstrate, sample_tasks, start, wander
from turngym.types import SPLITS, Split, TaskRange, TurnInfo

COMPARED = 2000
"""Tasks of a split that are looked up in another one, at even distances; plain ranges are compared whole."""

TOLERANCE = 1e-9
"""Rewards are differences of progress, so their sum is exact only up to rounding."""


def check_splits(subject: Subject) -> Finding:
    """train, validation and test exist, hold string ids, and share no task."""
    env = subject.make()
    splits: dict[Split, Sequence[str]] = {}
    for name in SPLITS:
        if name not in env.splits or not len(env.splits[name]):
            return fail(f"split {name!r} has no tasks", "Give `splits` all of train, validation and test.")
        splits[name] = env.tasks(name)
        odd = [task for task in subject.tasks.get(name, ()) if not isinstance(task, str)]
        if odd:
            return fail(
                f"split {name!r} holds {odd[0]!r}, a {type(odd[0]).__name__}", "Task ids are strings."
            )
    sampled = False
    for one, other in itertools.combinations(SPLITS, 2):
        shared = shared_task(splits[one], splits[other])
        if shared is not None:
            return fail(f"task {shared!r} is in {one} and in {other}", "Keep the splits disjoint.")
        sampled = sampled or _is_sampled(splits[one], splits[other])
    sizes = ", ".join(f"{name} {len(tasks)}" for name, tasks in splits.items())
    how = f" among {COMPARED} of each" if sampled else ""
    return ok(f"{sizes} tasks; no task in two splits{how}")


def shared_task(one: Sequence[str], other: Sequence[str]) -> str | None:
    """A task that both splits hold, if one is found; exact for plain ranges of step 1, and small splits.

    A lazy sequence that cannot list its tasks cheaply may have a method `covers`: ranges that hold them all.
    """
    if _are_apart(one, other) or _are_apart(other, one):
        return None
    if isinstance(one, TaskRange) and isinstance(other, TaskRange):
        steps = {one.numbers.step, other.numbers.step}
        if one.prefix == other.prefix and steps == {1}:
            return f"{one.prefix}{max(one.numbers.start, other.numbers.start)}"
    for some, all_others in ((one, other), (other, one)):
        known = all_others if isinstance(all_others, TaskRange) else frozenset(all_others)
        for task in sample_tasks(some, COMPARED):
            if task in known:
                return task
    return None


def _is_sampled(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether `shared_task` looks at a part of the tasks only."""
    proven = _are_apart(one, other) or _are_apart(other, one)
    return not proven and max(len(one), len(other)) > COMPARED


def _are_apart(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the ranges around one split show that it holds no task of the other."""
    ranges, others = _covers(one), _covers(other)
    if not ranges:
        return False
    if others:
        return not any(_overlap(mine, theirs) for mine in ranges for theirs in others)
    return len(other) <= COMPARED and not any(task in mine for mine in ranges for task in other)


def _covers(tasks: Sequence[str]) -> Sequence[TaskRange]:
    if isinstance(tasks, TaskRange):
        return (tasks,)
    covers: Sequence[TaskRange] = getattr(tasks, "covers", tuple)()
    return covers


def _overlap(one: TaskRange, other: TaskRange) -> bool:
    if one.prefix != other.prefix:
        # Number 1 of the prefix "a" may be number 1 of the prefix "": longer looks are for the caller.
        return one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)
    if not (one and other):
        return False
    ends = [sorted((tasks.numbers[0], tasks.numbers[-1])) for tasks in (one, other)]
    return ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]


def attempts(subject: Subject, env: TurnEnv) -> list[Attempt]:
    """Every looked-at task, played by the honest demonstrator."""
    return [demonstrate(env, task, subject.seed) for tasks in subject.tasks.values() for task in tasks]


def _no_expert(env: TurnEnv) -> Finding:
    if type(env).plan is TurnEnv.plan:
        return warn(
            "no expert: the class writes no plan(), so SFT can make no demonstrations",
            "Write plan(), or warm-start on recorded episodes.",
        )
    return warn(
        "no expert with these arguments (can_plan is False), so SFT can make no demonstrations",
        "Warm-start on recorded episodes, or choose arguments with an expert.",
    )


def check_expert(subject: Subject) -> Finding:
    """The honest demonstrator solves the tasks of every split within the turn limit."""
    env = subject.make()
    if not env.can_plan:
        return _no_expert(env)
    played = attempts(subject, env)
    lost = [one for one in played if one.outcome != "won"]
    if lost:
        return fail(
            f"{len(lost)} of {len(played)} tasks not solved; {lost[0].task!r} ended {lost[0].outcome} "
            f"after {len(lost[0].commands)} of {env.max_turns} turns, the last {lost[0].commands[-1]!r}",
            "Mend plan(), raise max_turns, or drop tasks that have no way.",
        )
    most = max(len(one.commands) for one in played)
    return ok(f"{len(played)} tasks solved in at most {most} of {env.max_turns} turns")


def check_honesty(subject: Subject) -> Finding:
    """The demonstrator uses no word that its agent was not shown and that is not of the command language."""
    env = subject.make()
    if not env.can_plan:
        return warn("not checked: there is no expert", "See the line before.")
    played = attempts(subject, env)
    for attempt in played:
        for command, word in attempt.unseen:
            return fail(
                f"task {attempt.task!r}: the expert says {command!r}, and nothing has shown {word!r}",
                "Show it in an observation, reveal it by inquire(), or name it in command_words if it is grammar.",
            )
    count = sum(len(one.commands) for one in played)
    return ok(f"{count} commands of {len(played)} demonstrations use only words that were shown")


def check_rewards(subject: Subject) -> Finding:
    """Rewards are those of DEFINITIONS section 1, and the score never says more than the state."""
    env, plays = subject.make(), 0
    for task in subject.few_tasks:
        scripts = [wander(env, task, seed).commands for seed in (subject.seed, subject.seed + 1)]
        if env.can_plan:
            scripts.append(demonstrate(env, task, subject.seed).commands)
        modes: tuple[Reward, ...] = ("dense", "sparse")
        for mode in modes:
            for seed, commands in zip((subject.seed, subject.seed + 1, subject.seed), scripts, strict=False):
                plays += 1
                env.reward = mode
                wrong = wrong_reward(env, task, seed, commands)
                if wrong:
                    return fail(f"task {task!r}, {mode} reward, {wrong}", _REWARD_STEP)
    return ok(f"{plays} episodes, dense and sparse, pay what the score says")


_REWARD_STEP = (
    "Leave rewards to the base; keep score <= max_score, and reach it only by solving "
    "(else set score_can_fill_unsolved = True)."
)


def wrong_reward(env: TurnEnv, task: str, seed: int, commands: Sequence[str]) -> str:
    """What is wrong with score and rewards of an episode, recomputed from `info` alone; "" where nothing is."""
    begun = start(env, task, seed)
    progress = total = 0.0
    info = begun
    for command in commands:
        _, reward, _, _, raw = env.step(command)
        info = TurnInfo.read(raw)
        if wrong := _wrong_score(info, begun, fillable=env.score_can_fill_unsolved):
            return f"turn {info.turn}: {wrong}"
        before, progress = progress, _progress(info, begun, fillable=env.score_can_fill_unsolved)
        right = progress - before if env.reward == "dense" else float(info.success)
        total += reward
        if not abs(reward - right) <= TOLERANCE:
            return f"turn {info.turn}: reward {reward} instead of {right}"
    if info.success and abs(total - 1) > TOLERANCE:
        return f"a solved episode returns {total} instead of 1"
    return "" if info.success or total < 1 - TOLERANCE else f"an unsolved episode returns {total}"


def _wrong_score(info: TurnInfo, begun: TurnInfo, *, fillable: bool) -> str:
    if not math.isfinite(info.score) or info.score > info.max_score + TOLERANCE:
        return f"score {info.score} with max_score {info.max_score}"
    if info.max_score != begun.max_score:
        return f"max_score went from {begun.max_score} to {info.max_score} during the episode"
    if info.score >= info.max_score and not info.success and not fillable:
        return f"the score is full ({info.score}) and the task not solved"
    return ""


def _progress(info: TurnInfo, begun: TurnInfo, *, fillable: bool) -> float:
    if info.success:
        return 1.0
    progress = (info.score - begun.score) / (info.max_score - begun.score)
    return min(progress, UNSOLVED_PROGRESS_CAP) if fillable else progress
