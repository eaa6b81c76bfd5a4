"""Extends `survey.json`, beside this file: which seeds give no full-length walkthrough, and the words of names.

    python -m turngym.envs.textworld.survey w2-o3-q4 w4-o6-q8 --last 54400

surveys what the table does not cover yet, up to training seed 54400 (4,000 games; without `--last` up to 51100) and
the test seeds, prints the share of test games of full length, and leaves the rest of the table as it is. It takes
about 0.25 s of a core for each seed at w2-o3-q4 and 0.4 s at w4-o6-q8, and may be stopped: what was measured is in
the cache and is not measured again. A level that enters the table gets other training and validation tasks.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.lengths import walkthrough_lengths
from turngym.envs.textworld.levels import parse_level, parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.survey_table import TABLE_NAME
from turngym.envs.textworld.tasks import TEST_PANELS, TRAIN_START, VALIDATION_START
from turngym.envs.textworld.text import squeeze
from turngym.envs.textworld.vocabulary import TYPES
from turngym.errors import TaskError

DEFAULT_LAST = 51100
WORDS_LEVEL, WORDS_SEEDS = CustomLevel(2, 3, 4), range(50001, 50501)

Ranges = Mapping[str, Sequence[int]]


def survey_level(level: Level, known: Ranges, last: int) -> dict[str, list[int]]:
    """The ranges of a level, "FIRST-LAST" -> seeds of other length: the known ones, and what they lack.

    Args:
        level: a level of the family custom.
        known: what the table says now; every range of it stays, or becomes longer.
        last: last training seed.
    """
    wanted = [(start, start + size - 1) for start, size in TEST_PANELS]
    wanted += [(VALIDATION_START, VALIDATION_START + 99), (TRAIN_START, last)]
    ranges = {}
    for first, end in sorted(wanted):
        covered, odd = next(
            (
                (int(text.split("-")[1]), list(seeds))
                for text, seeds in known.items()
                if text.startswith(f"{first}-")
            ),
            (first - 1, []),
        )
        lengths = walkthrough_lengths(level, range(covered + 1, end + 1))
        odd += [seed for seed in range(covered + 1, end + 1) if lengths[seed] != level.quest_length]
        ranges[f"{first}-{max(covered, end)}"] = odd
    return ranges


def full_share(ranges: Ranges) -> dict[str, float]:
    """Share of seeds of full length in each range."""
    shares = {}
    for text, odd in ranges.items():
        first, last = map(int, text.split("-"))
        shares[text] = 1 - len(odd) / (last + 1 - first)
    return shares


def name_words(task: str) -> dict[str, Any]:
    """Words of names by type in a task's game; none where TextWorld finds no quest."""
    words: dict[str, list[str]] = {kind: [] for kind in TYPES}
    try:
        game = backend.generate(*parse_task(task))
    except TaskError:
        return {"length": 0, "words": words}
    for entity in game.infos.values():
        if entity.name and entity.type in TYPES:
            words[entity.type].extend(squeeze(entity.name).split())
    return {"length": len(game.walkthrough or ()), "words": words}


def survey_words() -> dict[str, list[str]]:
    """Words by type of thing, in the training games of w2-o3-q4 with seeds 50001 to 50500."""
    tasks = [task_id(WORDS_LEVEL, seed) for seed in WORDS_SEEDS]
    games: list[Any] = run_parallel(name_words, tasks, label="Collecting words")
    full = [game["words"] for game in games if game["length"] == WORDS_LEVEL.quest_length]
    return {kind: sorted({word for words in full for word in words[kind]}) for kind in TYPES}


def extend_table(path: Path, levels: Sequence[Level], last: int) -> dict[str, dict[str, float]]:
    """Surveys what the table lacks, writes it, and returns the share of full-length games by level and range."""
    table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if table.get("textworld") != backend.VERSION:
        table = {"textworld": backend.VERSION, "levels": {}, "words": {}}
    for level in levels:
        table["levels"][level.name] = survey_level(level, table["levels"].get(level.name, {}), last)
    table["words"] = table["words"] or survey_words()
    path.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return {level.name: full_share(table["levels"][level.name]) for level in levels}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Extends survey.json.")
    parser.add_argument("levels", nargs="+", help="levels of the family custom, as in w2-o3-q4")
    parser.add_argument(
        "--last", type=int, default=DEFAULT_LAST, help="last training seed (default %(default)s)"
    )
    given = parser.parse_args()
    levels = [parse_level("custom", name) for name in given.levels]
    for level, shares in extend_table(Path(__file__).with_name(TABLE_NAME), levels, given.last).items():
        for seeds, share in shares.items():
            sys.stdout.write(f"{level} seeds {seeds}: {share:.1%} of full length\n")


if __name__ == "__main__":
    # By its own name, under which the workers find the job.
    from turngym.envs.textworld import survey

    survey.main()
