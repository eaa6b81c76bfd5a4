"""Writes `survey.json`, beside this file: which seeds give no full-length walkthrough, and the words of names.

    python -m turngym.envs.textworld.survey w2-o3-q4 w4-o6-q8

takes about 0.25 s of a core for each of 1,200 seeds of a level (w2-o3-q4; 0.4 s at w4-o6-q8).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.levels import Level, parse_level, parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.survey_table import TABLE_NAME
from turngym.envs.textworld.text import squeeze
from turngym.envs.textworld.vocabulary import TYPES
from turngym.errors import TaskError

RANGES = (range(20001, 20101), range(50001, 51101))
WORDS_LEVEL, WORDS_SEEDS = "w2-o3-q4", range(50001, 50501)


def survey_game(task: str) -> dict[str, Any]:
    """Length of a game's walkthrough, and words of names by type; 0 and none where TextWorld finds no quest."""
    try:
        game = backend.generate(*parse_task(task))
    except TaskError:
        return {"length": 0, "words": {}}
    words: dict[str, list[str]] = {kind: [] for kind in TYPES}
    for entity in game.infos.values():
        if entity.name and entity.type in TYPES:
            words[entity.type].extend(squeeze(entity.name).split())
    return {"length": len(game.walkthrough or ()), "words": words}


def survey_level(level: Level, seeds: Sequence[int]) -> Mapping[int, Any]:
    """What `survey_game` says of each seed."""
    tasks = [task_id(level, seed) for seed in seeds]
    return dict(zip(seeds, run_parallel(survey_game, tasks, label=f"Surveying {level.name}"), strict=True))


def write_table(path: Path, levels: Sequence[Level]) -> None:
    """Surveys the levels, WORDS_LEVEL among them, and writes the table."""
    table: dict[str, Any] = {"textworld": backend.VERSION, "levels": {}, "words": {}}
    for level in levels:
        found = survey_level(level, [seed for seeds in RANGES for seed in seeds])
        table["levels"][level.name] = {
            f"{seeds[0]}-{seeds[-1]}": [seed for seed in seeds if found[seed]["length"] != level.quest_length]
            for seeds in RANGES
        }
        if level.name == WORDS_LEVEL:
            full = [
                found[seed]["words"] for seed in WORDS_SEEDS if found[seed]["length"] == level.quest_length
            ]
            table["words"] = {
                kind: sorted({word for words in full for word in words[kind]}) for kind in TYPES
            }
    path.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    # By its own name, under which the workers find the job.
    from turngym.envs.textworld import survey

    survey.write_table(Path(__file__).with_name(TABLE_NAME), [parse_level(name) for name in sys.argv[1:]])
