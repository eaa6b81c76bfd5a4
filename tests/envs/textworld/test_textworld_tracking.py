"""Tracking answers as TextWorld's own `GameProgression` does, after any actions and whoever asks for what."""

from typing import Any

import numpy as np
import pytest
from textworld.generator.game import GameProgression
from textworld.generator.inform7 import Inform7Game

from turngym.envs.textworld import backend
from turngym.envs.textworld.games import load_game
from turngym.envs.textworld.levels import parse_task
from turngym.envs.textworld.machine import Machine
from turngym.envs.textworld.progress import Progress
from turngym.envs.textworld.text import read_reply
from turngym.errors import TaskError

pytestmark = pytest.mark.textworld

SMALL, TWO_QUESTS, NESTED_NAMES, LARGE = (
    "custom/w2-o3-q4/1", "custom/w2-o3-q4/8", "custom/w2-o3-q4/21", "custom/w4-o6-q8/4",
)  # fmt: skip
COOKING, DROP, NOTE = (
    "cooking/r2-t1-open-cut-cook-go1/3", "cooking/r1-t1-cook-drop-go1/3", "simple/dense-none/17",
)  # fmt: skip
TASKS = (
    TWO_QUESTS, LARGE, COOKING, DROP, NOTE,
    "coin/l103/3", "treasure/l3/2", "custom/w2-o3-q4-last/12",
)  # fmt: skip
MORE_LEVELS = (
    "custom/w2-o3-q4", "custom/w4-o6-q8", "custom/w6-o12-q10", "cooking/r3-t2-open-cut-cook-go6",
    "cooking/r2-t2-open-cut-drop-go6", "cooking/r5-t5-cook-go1", "simple/dense-detailed", "simple/balanced-brief",
    "simple/sparse-none", "coin/l20", "coin/l210", "treasure/l10", "treasure/l16", "treasure/l23",
)  # fmt: skip
NO_ACTIONS = ("jumping", "", "taking the", "taking the moon", "OPENING THE moon", "going up", "waiting")
JUNK = ("xyzzy", "take", "jump", "examine me", "take moon", "open door", "go north", "go south", "wait")


def told(tracking: Any) -> dict[str, Any]:
    """All that a tracking knows."""
    quests = [
        (quest.completed, quest.failed, quest.unfinishable, quest.nb_completions, quest.winning_policy)
        for quest in tracking.quest_progressions
    ]
    return {
        "actions": list(tracking.valid_actions),
        "policy": tracking.winning_policy,
        "facts": sorted(map(str, tracking.state.facts)),
        "ends": (tracking.completed, tracking.failed, tracking.done, tracking.score),
        "quests": quests,
    }


def event_of(game: Any, action: Any) -> str:
    """What Inform reports of an action."""
    mapping = game.kb.rules[action.name].match(action)
    names = {placeholder.name: game.infos[one.name].name for placeholder, one in mapping.items()}
    return str(game.kb.inform7_events[action.name].format(**names))


def walk(start: Any, rng: np.random.Generator, *, steps: int) -> None:
    """Does the same in a copy of our start and in TextWorld's own, and compares them; not after each step."""
    game = start.game
    ours, theirs, inform = start.copy(), GameProgression(game), Inform7Game(game)
    kept, known, last = ours, None, None
    for step in range(steps):
        if rng.random() < 0.7:
            assert told(ours) == told(theirs), step
        policy, valid = theirs.winning_policy, theirs.valid_actions
        drawn = valid[int(rng.integers(len(valid)))]
        if policy and rng.random() < 0.5:
            drawn = policy[0]
        elif last is not None and rng.random() < 0.1:
            drawn = last  # most often not possible any more
        for event in (event_of(game, drawn), NO_ACTIONS[int(rng.integers(len(NO_ACTIONS)))]):
            action = inform.detect_action(event, theirs.valid_actions)
            assert inform.detect_action(event, ours.actions_behind(event)) == action, event
        if rng.random() < 0.1:
            kept, known = ours, told(ours)
            ours = ours.copy()
        for tracking in (ours, theirs):
            tracking.update(drawn)
        last = drawn
    assert told(ours) == told(theirs)
    assert known is None or told(kept) == known


@pytest.mark.parametrize("task", TASKS)
def test_tracking_is_textworlds_own(task: str) -> None:
    start = backend.start_logic(backend.load_logic(load_game(*parse_task(task)).game))
    rng = np.random.default_rng(1)
    for _ in range(3):
        walk(start, rng, steps=15)


@pytest.mark.full
@pytest.mark.parametrize("level", MORE_LEVELS)
def test_tracking_is_textworlds_own_in_many_games(level: str) -> None:
    rng = np.random.default_rng(2)
    made = 0
    for seed in range(1, 30):
        try:
            game = backend.generate(*parse_task(f"{level}/{seed}"))
        except TaskError:
            continue
        start = backend.start_logic(backend.load_logic(backend.serialized(game)))
        for _ in range(6):
            walk(start, rng, steps=40)
        made += 1
        if made == 4:
            break
    assert made == 4


class Eager:
    """TextWorld's own class, with what `Progress` asks of a tracking."""

    def __init__(self, game: Any) -> None:
        self._game, self._own = game, GameProgression(game)
        self._is_new = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def copy(self) -> Any:
        return Eager(self._game) if self._is_new else self._own.copy()

    def update(self, action: Any) -> None:
        self._is_new = False
        self._own.update(action)

    def actions_behind(self, _: str) -> Any:
        return self._own.valid_actions


def answers(progress: Progress) -> list[Any]:
    """All that a progress tells."""
    return [
        progress.plan(), progress.commands(), progress.facts(), progress.conditions(), progress.learnt(),
        progress.completed(),
    ]  # fmt: skip


def play(task: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, *, episodes: int) -> None:
    """Plays the story at random, with the logic following as in the environment, and in TextWorld's own class."""
    level, seed = parse_task(task)
    stored = load_game(level, seed)
    machine, ours = Machine(stored.story), Progress(stored.game, level)
    with monkeypatch.context() as patch:
        patch.setattr(backend, "start_logic", Eager)
        theirs = Progress(stored.game, level)
    for _ in range(episodes):
        machine.restart()
        ours.restart()
        theirs.restart()
        for _ in range(20):
            draw, plan, commands = rng.random(), theirs.plan(), theirs.commands()
            command = commands[int(rng.integers(len(commands)))]
            if draw < 0.4 and plan:
                command = plan[0]
            elif draw < 0.5:
                command = command.partition(" from ")[0].replace("take", "get").replace("examine", "x")
            elif draw < 0.6:
                command = JUNK[int(rng.integers(len(JUNK)))]
            before = machine.save()
            reply = read_reply(machine.send(command))
            if not reply.acted:
                machine.restore(before)
                continue
            ours.follow(reply.events)
            theirs.follow(reply.events)
            if rng.random() < 0.7:
                assert answers(ours) == answers(theirs), command
            if reply.won or reply.lost:
                break


@pytest.mark.parametrize("task", [TWO_QUESTS, NESTED_NAMES, LARGE, COOKING, DROP, NOTE])
def test_plan_and_commands_are_what_textworlds_own_class_gives(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(task, np.random.default_rng(3), monkeypatch, episodes=2)


@pytest.mark.full
@pytest.mark.parametrize("task", [*TASKS, NESTED_NAMES])
def test_plan_and_commands_are_the_same_in_many_episodes(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play(task, np.random.default_rng(4), monkeypatch, episodes=30)


def test_a_machine_that_had_another_story_is_as_a_new_one() -> None:
    stories = {task: load_game(*parse_task(task)).story for task in (SMALL, LARGE, COOKING)}
    used = Machine()
    for task in (LARGE, SMALL, COOKING, SMALL):
        new = Machine(stories[task])
        used.open(stories[task])
        assert used.intro == new.intro
        for command in ("look", "inventory", "go east", "xyzzy", "take", "examine me", "quit", "y", "look"):
            assert used.send(command) == new.send(command)
            ours, theirs = used.save(), new.save()
            assert all(np.array_equal(ours[place], theirs[place]) for place in (0, 1))
            assert ours[2:] == theirs[2:]
