"""What token ids say, and whether a tokenizer is the one that wrote an episode."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from turngym.agents.tiny import build_tokenizer
from turngym.errors import CheckpointError
from turngym.types import Episode, Segment
from turngym.viewer.pieces import Pieces, find_pieces


def test_every_id_has_the_text_of_its_token(tokenizer_folder: Path, segment: Segment) -> None:
    pieces = Pieces(tokenizer_folder)
    assert [pieces.text(token) for token in segment.token_ids[:4]] == ["find", "the", "red", "key"]
    assert [pieces.text(token) for token in (-1, 10**6, 2**70)] == [None, None, None]


def test_a_run_stands_for_its_last_result(tokenizer_folder: Path) -> None:
    run = tokenizer_folder.parent / "run"
    run.mkdir()
    tokenizer_folder.rename(run / "final")
    assert Pieces(run).folder == run / "final"


def test_pieces_of_byte_tokenizers_show_their_blanks(tmp_path: Path) -> None:
    # In byte-level BPE a blank is written as Ġ, and é is the two pieces Ã and ©.
    vocabulary = {"go": 0, "Ġnorth": 1, "Ã": 2, "©": 3}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    pieces = Pieces(tmp_path)
    assert [pieces.text(token) for token in range(4)] == ["go", " north", "Ã", "©"]


def test_pieces_of_sentence_tokenizers_show_their_blanks(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"\u2581go": 0, "north": 1}, unk_token="north"))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    pieces = Pieces(tmp_path)
    assert [pieces.text(0), pieces.text(1)] == [" go", "north"]


def test_only_the_right_tokenizer_fits(
    tokenizer_folder: Path, tmp_path: Path, make_episode: Callable[..., Episode], segment: Segment
) -> None:
    episode = make_episode(segments=(segment,))
    assert Pieces(tokenizer_folder).fits(episode)
    build_tokenizer(("many", "other", "words", "of", "another", "game", *"pqr")).save_pretrained(
        tmp_path / "x"
    )
    assert not Pieces(tmp_path / "x").fits(episode)
    far = Segment((5, 10**9), (0.0, 0.0), segment.spans[:1])
    assert not Pieces(tokenizer_folder).fits(make_episode(segments=(far,)))


@pytest.mark.parametrize("place", ["rl/final", "rl/start", "final"])
def test_the_tokenizer_of_a_run_is_found(
    place: str, tokenizer_folder: Path, make_episode: Callable[..., Episode], segment: Segment
) -> None:
    run = tokenizer_folder.parent / "run"
    (run / place).parent.mkdir(parents=True)
    tokenizer_folder.rename(run / place)
    found = find_pieces(run / "rl" / "episodes.jsonl", make_episode(segments=(segment,)))
    assert found is not None and found.folder == run / place


def test_the_tokenizer_that_the_agent_names_is_found(
    tokenizer_folder: Path, make_episode: Callable[..., Episode], segment: Segment
) -> None:
    episode = make_episode(segments=(segment,), agent=str(tokenizer_folder))
    found = find_pieces(None, episode)
    assert found is not None and found.folder == tokenizer_folder


@pytest.mark.parametrize("agent", ["policy", "x" * 5000, "a\x00b", "/"])
def test_no_tokenizer_is_found_where_there_is_none(
    agent: str, tmp_path: Path, make_episode: Callable[..., Episode], segment: Segment
) -> None:
    episode = make_episode(segments=(segment,), agent=agent)
    assert find_pieces(tmp_path / "rl" / "episodes.jsonl", episode) is None


@pytest.mark.parametrize("content", ["", "{", json.dumps({"model": 3})])
def test_a_damaged_tokenizer_is_told(
    content: str, tmp_path: Path, make_episode: Callable[..., Episode], segment: Segment
) -> None:
    (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match="does not load"):
        Pieces(tmp_path)
    assert find_pieces(None, make_episode(segments=(segment,), agent=str(tmp_path))) is None


def test_a_folder_without_tokenizer_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"holds no tokenizer\.json"):
        Pieces(tmp_path)
