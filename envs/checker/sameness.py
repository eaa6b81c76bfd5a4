"""Checks that the same seed and commands give the same bytes: again, elsewhere, and after a restore."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from turngym.envs.base import TurnEnv
from turngym.envs.checker.report import Finding, fail, ok, warn
from turngym.envs.checker.subject import Subject, difference, go_on, line_of, play, start, wander

HASH_SEEDS = ("1", "2")
CHILD_LIMIT_S = 300.0


def check_same_bytes(subject: Subject) -> Finding:
    """Two instances, and an instance that has played another task before, answer alike."""
    one, other = subject.make(), subject.make()
    for task in subject.few_tasks:
        commands = wander(one, task, subject.seed).commands
        first = play(other, task, subject.seed, commands)
        if found := difference(first, play(one, task, subject.seed, commands)):
            return fail(f"task {task!r}: two instances differ at {found}", _CHANCE)
        for another in subject.few_tasks:
            wander(one, another, subject.seed + 1)
        if found := difference(first, play(one, task, subject.seed, commands)):
            return fail(
                f"task {task!r}: a used instance differs from a new one at {found}",
                "Build all state anew in load.",
            )
    return ok(f"{len(subject.few_tasks)} tasks play alike in two instances and in one that was used before")


_CHANCE = "Draw from rng in load and from self.np_random in act, and iterate over no set."


def check_start(subject: Subject) -> Finding:
    """The task id alone fixes the start, whatever the seed."""
    env, count = subject.make(), 0
    for task in (task for tasks in subject.tasks.values() for task in tasks):
        count += 1
        one, other = (
            line_of(env.reset(seed=seed, options={"task": task})) for seed in (subject.seed, subject.seed + 1)
        )
        if found := difference([one], [other]):
            return fail(f"task {task!r}: the start depends on the seed: {found}", "Draw from rng in load.")
    return ok(f"{count} tasks start the same under two seeds")


def check_looking(subject: Subject) -> Finding:
    """Asking for plan, inquiry, commands and state changes nothing, since callers differ in what they ask."""
    env = subject.make()
    for task in subject.few_tasks:
        commands = wander(env, task, subject.seed).commands
        plain = play(env, task, subject.seed, commands)
        looked = [line_of(env.reset(seed=subject.seed, options={"task": task}))]
        for command in commands:
            _look(env)
            looked += go_on(env, (command,))
        if found := difference(plain, looked):
            return fail(
                f"task {task!r}: an episode whose plan and commands were asked for differs at {found}",
                "Let plan, inquire, commands and state change nothing and draw no chance.",
            )
    return ok("asking for plan, inquiry, commands and state changes nothing")


def _look(env: TurnEnv) -> None:
    env.plan()
    env.inquire()
    env.commands()
    env.state()


def check_snapshot(subject: Subject) -> Finding:
    """From a snapshot, each continuation goes on as in an episode that was never interrupted."""
    env, fresh = subject.make(), subject.make()
    for task in subject.few_tasks:
        whole = wander(env, task, subject.seed).commands
        for turns in sorted({0, len(whole) // 2}):
            before = whole[:turns]
            branches = [whole[turns:], (*reversed(whole[turns:]), "look")]
            wanted = [play(fresh, task, subject.seed, [*before, *branch])[turns + 1 :] for branch in branches]
            start(env, task, subject.seed)
            go_on(env, before)
            moment = env.snapshot()
            for branch, lines in [
                (branches[0], wanted[0]),
                (branches[1], wanted[1]),
                (branches[0], wanted[0]),
            ]:
                env.restore(moment)
                if found := difference(lines, go_on(env, branch)):
                    return fail(
                        f"task {task!r}: restored to turn {turns}, the episode differs at {found}",
                        "Keep all state of the episode in attributes that copy.deepcopy copies whole.",
                    )
    return ok(f"{len(subject.few_tasks)} tasks go on alike, restored three times at two moments each")


def check_processes(subject: Subject) -> Finding:
    """Other processes, with other hash seeds, give the same bytes."""
    entry = _importable(subject)
    if entry is None:
        return warn(
            "not checked: a new process could not import this environment",
            "Register an id and check `module:ns/Name-v0`.",
        )
    env = subject.make()
    scripts = {task: wander(env, task, subject.seed).commands for task in subject.few_tasks}
    plays = [{"task": task, "seed": subject.seed, "commands": script} for task, script in scripts.items()]
    request = json.dumps({**entry, "plays": plays})
    here = [line for task, script in scripts.items() for line in play(env, task, subject.seed, script)]
    children = [_child(hash_seed) for hash_seed in HASH_SEEDS]
    answers = [child.communicate(request, timeout=CHILD_LIMIT_S) for child in children]
    for child, hash_seed, (out, err) in zip(children, HASH_SEEDS, answers, strict=True):
        if child.returncode:
            last = err.strip().splitlines()[-1:] or ["no message"]
            return warn(
                f"not checked: the new process failed: {last[0]}",
                "Make the environment importable by its id.",
            )
        if found := difference(here, json.loads(out.splitlines()[-1])):
            return fail(f"PYTHONHASHSEED={hash_seed} differs from here at {found}", _CHANCE)
    return ok(f"{len(plays)} tasks play alike in {len(children)} more processes with other hash seeds")


def _importable(subject: Subject) -> Mapping[str, Any] | None:
    """How a new process makes the environment; None where it can't."""
    ref = subject.ref
    try:
        json.dumps(dict(ref.kwargs))
    except TypeError:
        return None
    if ref.factory is None:
        return {"env_id": ref.env_id, "kwargs": dict(ref.kwargs)}
    name = getattr(ref.factory, "__qualname__", "<none>")
    module = getattr(ref.factory, "__module__", "__main__")
    if "<" in name or module == "__main__":
        return None
    return {"factory": f"{module}:{name}", "kwargs": dict(ref.kwargs)}


def _child(hash_seed: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "turngym.envs.checker.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
    )
