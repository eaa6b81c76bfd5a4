"""`tw-make tw-cooking`: read the recipe, gather, cut and cook, eat."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from turngym.envs.textworld.families.base import Level, checked
from turngym.errors import ConfigError

SKILLS = ("open", "cut", "cook", "drop")
ROOMS = (1, 6, 9, 12)
MAX_INGREDIENTS = 5
_ROOMS_WITH_BBQ = 9

_WRITTEN = re.compile(r"r([0-9]+)-t([0-9]+)((?:-(?:open|cut|cook|drop))*)-go([0-9]+)")


@dataclass(frozen=True, slots=True)
class CookingLevel(Level):
    """A game of the kind of First TextWorld Problems, whose limit of 100 commands it keeps.

    Attributes:
        recipe: ingredients, 1 to 5.
        take: those that must be found, at most `recipe`; the others are carried.
        skills: of `SKILLS`, in that order: doors and containers are closed, things must be cut, be cooked; with drop
            the agent carries no more than the recipe needs, and TextWorld has no plan.
        rooms: 1, 6, 9 or 12.
    """

    family: ClassVar[str] = "cooking"
    example: ClassVar[str] = "r1-t1-cook-go1"
    form: ClassVar[str] = (
        "ingredients, those to find, skills and rooms, as in 'r3-t2-open-cut-cook-go6' or 'r1-t0-go1'"
    )
    challenge: ClassVar[str] = "tw-cooking"
    # What an appliance is for, only its name tells, and the recipe speaks of the meal and of what is done.
    # fmt: off
    kept_words: ClassVar[frozenset[str]] = frozenset({
        "bbq", "burned", "chop", "chopped", "cook", "cookbook", "dice", "diced", "drink", "eat", "fried", "fry",
        "grill", "grilled", "kitchen", "knife", "meal", "oven", "prepare", "raw", "recipe", "roast", "roasted",
        "slice", "sliced", "stove", "toaster", "uncut",
    })
    # fmt: on
    verbs: ClassVar[frozenset[str]] = frozenset({"chop", "cook", "dice", "drink", "meal", "prepare", "slice"})

    recipe: int
    take: int
    skills: tuple[str, ...]
    rooms: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _WRITTEN.fullmatch(text)
        if match is None:
            return None
        recipe = checked(
            1, int(match[1]), MAX_INGREDIENTS, f"level = {text!r}: r, the number of ingredients,"
        )
        take = checked(0, int(match[2]), recipe, f"level = {text!r}: t, the ingredients to find,")
        named = match[3].split("-")[1:]
        if int(match[4]) not in ROOMS:
            raise ConfigError(f"level = {text!r}: go is {match[4]}: TextWorld makes 1, 6, 9 or 12 rooms.")
        level = cls(recipe, take, tuple(skill for skill in SKILLS if skill in named), int(match[4]))
        if "cut" in named and "cook" not in named and level.rooms >= _ROOMS_WITH_BBQ:
            raise ConfigError(
                f"level = {text!r}: with cut and without cook TextWorld fails at most games of 9 and 12 rooms. "
                "Add cook, or take 1 or 6 rooms."
            )
        if level.name != text:
            raise ConfigError(f"level = {text!r}: each level has one spelling. Write {level.name!r}.")
        return level

    @property
    def name(self) -> str:
        return "-".join((f"r{self.recipe}", f"t{self.take}", *self.skills, f"go{self.rooms}"))

    @property
    def max_turns(self) -> int:
        return 100

    @property
    def settings(self) -> Mapping[str, Any]:
        skills = {skill: skill in self.skills for skill in SKILLS}
        sizes = {"recipe": self.recipe, "take": self.take, "go": self.rooms}
        return {**sizes, **skills, "recipe_seed": 0, "split": None}

    @property
    def rewords(self) -> bool:
        return False

    @property
    def has_expert(self) -> bool:
        return "drop" not in self.skills

    @property
    def document(self) -> str:
        return "cookbook"

    @property
    def checks_inventory(self) -> bool:
        return self.take < self.recipe
