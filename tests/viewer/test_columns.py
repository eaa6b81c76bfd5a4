"""How episodes stand in the page's data."""

import base64
import gzip
import json
import math
import re
from collections.abc import Callable
from typing import Any

from turngym.types import Episode, PlayedTurn, Segment
from turngym.viewer import columns as columns_module
from turngym.viewer.columns import Columns, pack

HOSTILE = "</script><img src=x onerror=alert(1)> <!-- \u2028 \u2029 \x00 \ud83d"


def unpack(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_no_text_can_break_out_of_the_packed_data() -> None:
    packed = pack({"text": HOSTILE})
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed)
    assert unpack(packed) == {"text": HOSTILE}


def test_the_same_values_give_the_same_page() -> None:
    assert pack([1, "a"]) == pack([1, "a"])


def test_the_table_and_the_details_hold_the_episode(
    make_episode: Callable[..., Episode], segment: Segment
) -> None:
    columns = Columns()
    episode = make_episode(7, segments=(segment,), outcome="lost", error="Boom")
    columns.add(episode, source=1, line=3)
    columns.close()
    row = {name: values[0] for name, values in columns.table.items()}
    assert (row["source"], row["line"], row["number"], row["outcome"]) == (1, 3, 7, "lost")
    assert (row["return"], row["turns"], row["tokens"], row["authors"]) == (1, 2, 9, "policy")
    assert row["seed"] == str(2**62 + 7), "a JavaScript number would be another seed"
    assert json.loads(row["env_kwargs"]) == {"level": "w2-o3-q4"}
    ((observation, turns, segments),) = unpack(columns.chunks[row["chunk"]])
    assert observation == "A room."
    assert turns[0] == ["look", "You see the key.", 0.5, 1, 1, "policy", "", "stop", 0.0012]
    ids, log_probs, spans = segments[0]
    assert (tuple(ids), log_probs[6:]) == (segment.token_ids, [-0.01, 0, -3])
    assert spans[1] == [6, 7, 0, "policy"]


def test_instructions_are_kept_once(make_episode: Callable[..., Episode]) -> None:
    columns = Columns()
    for number, text in enumerate(("one", "two", "one")):
        columns.add(make_episode(number, instructions=text), source=0, line=number + 1)
    assert columns.instructions == ["one", "two"]
    assert columns.table["instructions"] == [0, 1, 0]


def test_what_json_has_no_number_for_keeps_its_name(
    make_episode: Callable[..., Episode], turn: Callable[..., PlayedTurn]
) -> None:
    columns = Columns()
    columns.add(make_episode(turns=(turn(reward=math.nan),), score=-math.inf), source=0, line=1)
    columns.close()
    assert (columns.table["return"], columns.table["score"]) == (["NaN"], ["-Infinity"])
    assert unpack(columns.chunks[0])[0][1][0][2] == "NaN"


def test_details_are_packed_in_runs_and_each_row_knows_its_own(
    make_episode: Callable[..., Episode], monkeypatch: Any
) -> None:
    monkeypatch.setattr(columns_module, "CHUNK_CHARS", 1000)
    columns = Columns()
    for number in range(40):
        columns.add(make_episode(number, observation=f"room {number}"), source=0, line=number + 1)
    columns.close()
    assert 2 < len(columns.chunks) < 40
    runs = [unpack(chunk) for chunk in columns.chunks]
    places = dict.fromkeys(range(len(runs)), 0)
    for number, chunk in enumerate(columns.table["chunk"]):
        assert runs[chunk][places[chunk]][0] == f"room {number}"
        places[chunk] += 1
