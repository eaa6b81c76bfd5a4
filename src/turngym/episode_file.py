"""Episodes on disk: JSON lines, one episode a line, one fixed schema that viewers, trainers and bench read.

Free-form values (environment arguments) stand as JSON strings, so that every line has the same columns and
`datasets.load_dataset("json")` can load a file. Log-probs keep nine significant digits, which give a float32
back exactly.
"""

import json
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ConfigDict, ValidationError

from turngym.config import Settings
from turngym.errors import FileFormatError
from turngym.types import Author, Episode, Outcome, PlayedTurn, Segment, Span

FORMAT = 1


class _Turn(Settings):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
    command: str
    observation: str
    reward: float
    score: float
    valid: bool
    author: Author
    thought: str
    finish_reason: str
    latency_s: float


class _Segment(Settings):
    token_ids: list[int]
    log_probs: list[float]
    spans: list[tuple[int, int, int, Author]]


class _Line(Settings):
    format: int
    number: int
    group: int
    env_id: str
    env_kwargs: str
    task: str
    seed: int
    attempt: int
    agent: str
    instructions: str
    observation: str
    turns: list[_Turn]
    outcome: Outcome
    score: float
    max_score: float
    start_key: str
    segments: list[_Segment]
    weights_version: int
    error: str


class EpisodeWriter:
    """Writes episodes to one file, a line each, flushed line by line.

    Args:
        path: parent folders are made; an existing file is continued.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _cut_half_line(self.path)
        # Half of a surrogate pair, which a remote model may send, is no text: it becomes a question mark.
        self._file = self.path.open("a", encoding="utf-8", errors="replace")

    def write(self, episode: Episode) -> None:
        """Appends one episode."""
        self._file.write(json.dumps(_to_line(episode), ensure_ascii=False, separators=(",", ":")) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "EpisodeWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class EpisodeFile:
    """Reads a file of episodes; iterate for the episodes.

    Args:
        lines: numbers of the lines to read, from 1; the others are passed over unread. None reads all.

    Attributes:
        half_lines: lines dropped because the writer died in the middle of them; only the last can be one.
    """

    def __init__(self, path: str | Path, *, lines: Container[int] | None = None) -> None:
        self.path = Path(path)
        self.lines = lines
        self.half_lines = 0

    def __iter__(self) -> Iterator[Episode]:
        self.half_lines = 0
        try:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    if not raw.endswith(b"\n"):
                        self.half_lines += 1
                        return
                    if self.lines is None or number in self.lines:
                        yield _from_line(raw, f"{self.path} line {number}")
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def count(self) -> int:
        """Number of whole lines, of which none is parsed; counts `half_lines` too."""
        num_whole = self.half_lines = 0
        try:
            with self.path.open("rb") as file:
                for line in file:
                    whole = line.endswith(b"\n")
                    num_whole, self.half_lines = num_whole + whole, int(not whole)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return num_whole


def read_episodes(path: str | Path) -> list[Episode]:
    """All whole episodes of a file.

    Raises:
        FileFormatError: a line is no episode; names file, line and field.
    """
    return list(EpisodeFile(path))


def write_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Writes a new file beside `path` and renames it, so that a half-written one is never read."""
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    beside.unlink(missing_ok=True)
    with EpisodeWriter(beside) as writer:
        for episode in episodes:
            writer.write(episode)
    beside.replace(target)


def _unreadable(path: Path, error: OSError) -> FileFormatError:
    return FileFormatError(f"Cannot read {path}: {error.strerror}. Give a file of episodes.")


def _cut_half_line(path: Path) -> None:
    """Removes a last line without its end, so that what is appended starts on a line of its own."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)


def _to_line(episode: Episode) -> dict[str, Any]:
    line: dict[str, Any] = {"format": FORMAT}
    for name in _Line.model_fields:
        if name not in ("format", "env_kwargs", "turns", "segments"):
            line[name] = getattr(episode, name)
    line["env_kwargs"] = json.dumps(dict(episode.env_kwargs), sort_keys=True)
    line["turns"] = [{name: getattr(turn, name) for name in _Turn.model_fields} for turn in episode.turns]
    line["segments"] = [
        {
            "token_ids": list(segment.token_ids),
            "log_probs": [float(f"{value:.9g}") for value in segment.log_probs],
            "spans": [[span.start, span.end, span.turn, span.author] for span in segment.spans],
        }
        for segment in episode.segments
    ]
    return line


def _from_line(raw: bytes, where: str) -> Episode:
    try:
        line = _Line.model_validate_json(raw)
        kwargs = json.loads(line.env_kwargs)
    except ValidationError as error:
        _check_format(_format_of(raw), where)
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the line"
        raise FileFormatError(
            f"{where}: {field}: {first['msg']}. The file is damaged or of another program; remove the line or the file."
        ) from error
    except ValueError as error:
        raise FileFormatError(f"{where}: env_kwargs is no JSON. Remove the line or the file.") from error
    _check_format(line.format, where)
    values = {
        name: getattr(line, name) for name in _Line.model_fields if name not in ("format", "env_kwargs")
    }
    values["turns"] = tuple(PlayedTurn(**turn.model_dump()) for turn in line.turns)
    values["segments"] = tuple(
        Segment(
            tuple(segment.token_ids), tuple(segment.log_probs), tuple(Span(*span) for span in segment.spans)
        )
        for segment in line.segments
    )
    return Episode(env_kwargs=kwargs, **values)


def _check_format(written: object, where: str) -> None:
    if written != FORMAT:
        raise FileFormatError(
            f"{where}: format {written} is not {FORMAT}. Use the turngym version that wrote it."
        )


def _format_of(raw: bytes) -> object:
    """Format of a line that does not read, so that its fields are not blamed for another format."""
    try:
        line = json.loads(raw)
    except ValueError:
        return FORMAT
    return line.get("format", FORMAT) if isinstance(line, dict) else FORMAT
