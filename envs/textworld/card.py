"""A game as it is stored: one zip of 140 KB with the story (385 KB unpacked), TextWorld's game, and the card."""

import json
import struct
import zipfile
import zlib
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

CARD_VERSION = 1
"""Goes up when the card's meaning changes; older files are made again."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading a broken file out of memory may raise."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same game is the same bytes


@dataclass(frozen=True, slots=True)
class Card:
    """What the environment and the augmentations need to know of a game, all in lower case.

    Attributes:
        objective: what the agent is told.
        reworded: other objectives that name the same things.
        walkthrough: the plan from the start.
        names: names of things and rooms.
        types: type of each of `names`: r room, d door, c container, s supporter, k key, f food, o other; cooking
            games have further ones.
        num_quests: quests to complete; one in ten custom games has two.
        points: the most that the game itself gives.
    """

    objective: str
    reworded: tuple[str, ...]
    walkthrough: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    num_quests: int
    points: int = 1


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A game as it lies in the cache."""

    card: Card
    story: bytes
    game: dict[str, Any]

    def __deepcopy__(self, memo: object) -> "StoredGame":
        # Nobody changes it, and a snapshot of an environment would copy it each time.
        return self


def pack(stored: StoredGame) -> bytes:
    """The file of a game; equal games, equal bytes."""
    parts = {
        "card.json": json.dumps({"version": CARD_VERSION, **asdict(stored.card)}).encode(),
        "story.z8": stored.story,
        "game.json": json.dumps(stored.game).encode(),
    }
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            # The card is read alone and often, so it stays as it is.
            method = zipfile.ZIP_STORED if name == "card.json" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, method)
    return buffer.getvalue()


def unpack(archive: zipfile.ZipFile) -> StoredGame | None:
    """The game in a file; None where the file is of an older version. Raises one of `DAMAGE` where it is broken."""
    card = unpack_card(archive)
    if card is None:
        return None
    return StoredGame(card, archive.read("story.z8"), json.loads(archive.read("game.json")))


def unpack_card(archive: zipfile.ZipFile) -> Card | None:
    """The card in a file, likewise."""
    if any(part.compress_type not in _METHODS for part in archive.infolist()):
        raise zipfile.BadZipFile("packed in another way than ours")
    values = json.loads(archive.read("card.json"))
    if values["version"] != CARD_VERSION:
        return None
    return Card(
        objective=values["objective"],
        reworded=tuple(values["reworded"]),
        walkthrough=tuple(values["walkthrough"]),
        names=tuple(values["names"]),
        types=tuple(values["types"]),
        num_quests=values["num_quests"],
        points=values.get("points", 1),
    )
