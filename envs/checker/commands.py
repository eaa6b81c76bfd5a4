"""Checks of what an environment does with commands: listed ones, several in one, and junk."""

import numpy as np

from turngym import seeding
from turngym.envs.base import TurnEnv
from turngym.envs.checker.report import Finding, fail, fault, ok, warn
from turngym.envs.checker.subject import JUNK_WORDS, Subject, demonstrate, start, wander

COMMANDS_TRIED = 20
JOINERS = ("\n", "\r\n", ". ", "; ", ", ", " then ", " THEN ", " and ", " && ")


def check_commands(subject: Subject) -> Finding:
    """Each admissible command works, and the list stands in an order that tells nothing."""
    env, tried, unsorted = subject.make(), 0, ""
    if type(env).commands is TurnEnv.commands:
        return ok("the class lists no commands")
    for task in subject.few_tasks:
        for turns in (0, 1, 4):
            if not wander(env, task, subject.seed, turns=turns).running:
                continue
            commands = env.commands() or []
            where = f"task {task!r}, turn {turns}"
            if len(set(commands)) != len(commands):
                return fail(f"{where}: a command is listed twice in {commands}", "List each once.")
            if commands != sorted(commands):
                unsorted = f"{where}: {commands[:5]}"
            moment = env.snapshot()
            for command in commands[:: max(len(commands) // COMMANDS_TRIED, 1)]:
                tried += 1
                info = env.step(command)[4]
                env.restore(moment)
                if not info["valid"]:
                    return fail(
                        f"{where}: {command!r} is listed as admissible and refused as invalid",
                        "List what act takes, or set valid=True where the command was understood.",
                    )
    if unsorted:
        return warn(f"not sorted: {unsorted}", "Return sorted(...): another order can tell the answer.")
    return ok(f"{tried} listed commands work")


def check_compound(subject: Subject) -> Finding:
    """A refused command leaves the state as it was, and no turn runs two commands."""
    env, refused = subject.make(), 0
    for task in subject.few_tasks:
        pair = _two_commands(env, task, subject.seed)
        start(env, task, subject.seed)
        too_long = "x" * (env.max_command_chars + 1)
        for text in (too_long, *(joiner.join(pair) for joiner in JOINERS)):
            key = start(env, task, subject.seed).state_key
            pattern = env.compound_pattern
            info = env.step(text)[4]
            if text is not too_long and (pattern is None or not pattern.search(text.strip())):
                if _runs_both(env, task, subject.seed, pair, str(info["state_key"])):
                    return fail(
                        f"task {task!r}: {text!r} ran both commands in one turn", "Widen `compound_pattern`."
                    )
                continue
            refused += 1
            if info["valid"]:
                return fail(f"task {task!r}: {text[:80]!r} was not refused", "Leave step to the base class.")
            if info["state_key"] != key:
                return fail(
                    f"task {task!r}: {text[:80]!r} was refused, and yet state_key changed",
                    "Keep the turn number, clocks and chance out of state(): the state is what a command changes.",
                )
    return ok(f"{refused} compound and over-long commands refused, with the state untouched")


def _two_commands(env: TurnEnv, task: str, seed: int) -> tuple[str, str]:
    """Two commands that can follow one another: of the expert, or of a mixed play."""
    commands = demonstrate(env, task, seed).commands if env.can_plan else wander(env, task, seed).commands
    return (commands[0], commands[1]) if len(commands) > 1 else (commands[0], commands[0])


def _runs_both(env: TurnEnv, task: str, seed: int, pair: tuple[str, str], key: str) -> bool:
    """Whether a state is the one after both commands, and after none and one of them is another."""
    keys = [start(env, task, seed).state_key]
    for command in pair:
        _, _, terminated, truncated, info = env.step(command)
        keys.append(str(info["state_key"]))
        if terminated or truncated:
            break
    return len(set(keys)) == 3 and key == keys[2]


def check_junk(subject: Subject) -> Finding:
    """Nothing that an agent says makes the environment raise, or answer with anything but text."""
    env = subject.make()
    rng = seeding.generator(subject.seed, "check", "junk")
    env.action_space.seed(subject.seed)
    tasks = [task for tasks in subject.tasks.values() for task in tasks]
    running, episodes = False, 0
    for _ in range(subject.junk_actions):
        if not running:
            start(env, tasks[episodes % len(tasks)], subject.seed)
            episodes += 1
        action = _junk(env, rng)
        try:
            observation, _, terminated, truncated, _ = env.step(action)
        except Exception as error:  # noqa: BLE001 - the border to the author's code
            return fault(error, f"playing {action[:200]!r}", strict=subject.strict)
        if not isinstance(observation, str):
            return fail(
                f"the observation after {action[:200]!r} is a {type(observation).__name__}", "Return a str."
            )
        running = not (terminated or truncated)
    return ok(f"{subject.junk_actions} junk actions in {episodes} episodes raise nothing")


_ODD_TEXTS = (
    "", " ", "\n", "\t \r\n", "\x00", "\x1b[2J", "\ufeff", "e\u0301", "{}", "[]", "None", "-1", "1e999", "%s %d",
    "{0}", "../..", "<|im_end|>", "'; --",
)  # fmt: skip


def _junk(env: TurnEnv, rng: np.random.Generator) -> str:
    """Odd text of many kinds, partly made of pieces of commands that work."""
    words = " ".join(env.commands() or JUNK_WORDS).split()
    chosen = [words[int(i)] for i in rng.integers(len(words), size=int(rng.integers(1, 6)))]
    kinds = (
        env.action_space.sample(),
        "x" * int(rng.integers(1, 3 * env.max_command_chars)),
        _ODD_TEXTS[int(rng.integers(len(_ODD_TEXTS)))],
        "".join(chr(int(code)) for code in rng.integers(0, 0x20, size=6)),
        "\n".join(chosen),
        " ".join(chosen),
        " ".join(chosen).upper(),
        " ".join(chosen)[: int(rng.integers(1, 30))],
        f"{chosen[0]} {_ODD_TEXTS[int(rng.integers(len(_ODD_TEXTS)))]}",
    )
    return kinds[int(rng.integers(len(kinds)))]
