"""Token ids as text: which tokenizer wrote an episode, and what each of its ids says."""

import json
from pathlib import Path

from tokenizers import Tokenizer

from turngym.envs.honesty import words_of
from turngym.errors import CheckpointError
from turngym.types import Episode

FILE_NAME = "tokenizer.json"
LEAST_SHARED = 0.7
"""Share of an episode's words that the text of its tokens must hold, for the tokenizer to be the right one."""


class Pieces:
    """Texts of the ids of one tokenizer.

    Args:
        folder: holds `tokenizer.json`; a run's folder stands for its last result.

    Raises:
        CheckpointError: no such file, or not a tokenizer.
    """

    def __init__(self, folder: Path) -> None:
        found = next((place for place in (folder, folder / "final") if _holds_tokenizer(place)), None)
        if found is None:
            raise CheckpointError(
                f"{folder} holds no {FILE_NAME}. Give the checkpoint folder that played the episodes."
            )
        self.folder = found
        text = (found / FILE_NAME).read_text(encoding="utf-8", errors="replace")
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # The library raises nothing narrower.
            raise CheckpointError(
                f"{found / FILE_NAME} does not load: {error}. Give a complete checkpoint."
            ) from error
        self._spells_bytes = '"ByteLevel"' in json.dumps(json.loads(text).get("decoder"))

    def text(self, token_id: int) -> str | None:
        """What an id says, with the blanks it stands for; None where the tokenizer has no such id."""
        piece = self._piece(token_id)
        if piece is None:
            return None
        if self._spells_bytes:
            text = self._tokenizer.decode([token_id], skip_special_tokens=False)
            # Half of a character has no text of its own; the raw piece at least tells two halves apart.
            return piece if "\ufffd" in text else text
        return piece.replace("\u2581", " ")

    def fits(self, episode: Episode) -> bool:
        """Whether the tokens of an episode that has some, read by this tokenizer, say what the episode says."""
        words = set(words_of(f"{episode.instructions} {episode.observation}"))
        ids = [token for segment in episode.segments for token in segment.token_ids]
        if any(self._piece(token) is None for token in set(ids)):
            return False
        said = set(words_of(self._tokenizer.decode(ids, skip_special_tokens=False)))
        return len(words & said) >= LEAST_SHARED * len(words)

    def _piece(self, token_id: int) -> str | None:
        if not 0 <= token_id < self._tokenizer.get_vocab_size():
            return None
        piece: str | None = self._tokenizer.id_to_token(token_id)
        return piece


def find_pieces(file: Path | None, episode: Episode) -> Pieces | None:
    """The tokenizer that wrote an episode, from the checkpoint that its agent names or its run's folders."""
    places = [Path(episode.agent), Path(episode.agent, "final")]
    if file is not None:
        places += [file.parent / "final", file.parent / "start", file.parent.parent / "final"]
    for place in places:
        if _holds_tokenizer(place):
            try:
                pieces = Pieces(place)
            except CheckpointError:
                continue
            if pieces.fits(episode):
                return pieces
    return None


def _holds_tokenizer(folder: Path) -> bool:
    try:
        return (folder / FILE_NAME).is_file()
    except OSError:  # An agent's name may be no path at all, or too long for one.
        return False
