"""The command line: every command explains itself, and bad input ends with a next step and code 2."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from turngym import cli, play
from turngym.benchmarks.report import read_results
from turngym.episode_file import write_episodes
from turngym.training.recipe import recipe_names

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "list",
    "help",
    "recipe",
    "check",
    "play",
    "view",
    "train",
    "sft",
    "bench",
    "demo",
    "sweep",
    "speed",
)
KINDS = ("envs", "suites", "recipes", "speed", "advantage")
TINY = [
    "model.hidden=16", "model.layers=1", "model.heads=2", "model.ff=16",
    "sft.steps=1", "sft.tasks.count=4", "sft.episodes_per_step=2", "sft.demos.noise=[0.0]",
    "rl.updates=1", "rl.groups=1", "rl.group_size=2", "rl.tasks.start=4",
    "validation.every=1", "validation.tasks=2", "run.threads=1",
]  # fmt: skip
LONGEST_LINE = 240


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left."""

    code: int
    out: str
    err: str


Turngym = Callable[..., Ended]


@pytest.fixture
def turngym(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Turngym]:
    """Runs the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    threads = torch.get_num_threads()

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["turngym", *arguments])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        code = leaving.value.code
        assert isinstance(code, int)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    yield run
    torch.set_num_threads(threads)


def real(*arguments: str, folder: Path, start: tuple[str, ...] = ("-m", "turngym.cli")) -> Ended:
    """Runs the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, *start, *arguments],
        capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": str(ROOT / "src")}, timeout=120,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def assert_bad_input(ended: Ended, *needles: str) -> None:
    """Code 2, at most three clear lines that hold the needles, no traceback."""
    assert ended.code == 2, ended
    lines = ended.err.splitlines()
    assert 1 <= len(lines) <= 3, ended.err
    assert max(len(line) for line in lines) <= LONGEST_LINE, ended.err
    assert "Traceback" not in ended.err
    for needle in needles:
        assert needle in ended.err


BAD = {
    "unknown command": ("trian", "No such command 'trian'", "Did you mean 'train'?", "turngym --help"),
    "unknown option": ("check Rooms-v0 --loud", "No such option: --loud", "turngym check --help"),
    "missing argument": ("train", "Missing argument", "turngym train --help"),
    "missing option": ("bench rooms-easy", "Missing option '--agent'", "turngym bench --help"),
    "option of wrong type": ("bench rooms-easy --agent expert --seed x", "'--seed'", "turngym bench --help"),
    "unknown kind": ("list sweets", "No kind 'sweets'", "Known:"),
    "unknown kind in help": ("help sweets x", "No kind 'sweets'", "Known:"),
    "unknown advantage in help": ("help advantage rlo", "No advantage 'rlo'", "Did you mean 'rloo'?"),
    "unknown id": ("check Roms-v0", "No environment 'Roms-v0'", "Did you mean 'turngym/Rooms-v0'?"),
    "unknown id in help": ("help env Roms-v0", "No environment 'Roms-v0'", "Did you mean"),
    "unknown id in a recipe": ("train rooms-demo envs.0.id=Roms-v0", "No environment 'Roms-v0'", "Did you mean"),
    "unknown module": ("check nowhere:ns/X-v0", "No module 'nowhere'", "install it"),
    "unknown level": ("check Rooms-v0 level=huge", "'huge' is no level", "as in 'w2-o3-q4'"),
    "unknown level in a recipe": ("train rooms-demo envs.0.kwargs.level=huge", "'huge' is no level", "as in"),
    "unknown environment argument": ("check Rooms-v0 lvel=x", "no argument 'lvel'", "turngym help env"),
    "unknown id to play": ("play Roms-v0", "No environment 'Roms-v0'", "Did you mean 'turngym/Rooms-v0'?"),
    "unknown task to play": ("play Rooms-v0 --task nowhere", "'nowhere'", "ask"),
    "unknown split to play": ("play Rooms-v0 --split tset", "No split 'tset'", "train, validation, test"),
    "task and split to play": ("play Rooms-v0 --task a --split test", "name one of them"),
    "unknown argument to play": ("play Rooms-v0 lvel=x", "no argument 'lvel'", "turngym help env"),
    "absent file to view": ("view none.jsonl", "Cannot read none.jsonl", "Give a file of episodes"),
    "folder to view": ("view .", "is a folder", "Give a file of episodes"),
    "no number of episodes to view": ("view none.jsonl --limit many", "'--limit'", "turngym view --help"),
    "unknown recipe": ("train rooms-dmo", "No recipe 'rooms-dmo'", "Did you mean 'rooms-demo'?"),
    "unknown recipe to print": ("recipe rooms-dmo", "No recipe 'rooms-dmo'", "Did you mean 'rooms-demo'?"),
    "absent recipe file": ("train my/own.yaml", "No recipe file 'my/own.yaml'", "turngym list recipes"),
    "no override": ("train rooms-demo quickly", "'quickly' is no setting", "Write key=value"),
    "unknown recipe key": ("train rooms-demo updats=2", "updats is not a setting", "Did you mean 'updates'?"),
    "unknown deep key": ("train rooms-demo rl.optim.lrr=1", "rl.optim.lrr is not a setting", "Did you mean 'lr'?"),
    "key one level too high": ("train rooms-demo lr=1", "lr is not a setting", "sft.optim.lr or rl.optim.lr"),
    "key of two stages": ("train rooms-demo optim.lr=1", "several stages", "sft.optim.lr, rl.optim.lr"),
    "unknown choice": ("train rooms-demo advantage=grop", "No advantage 'grop'", "Did you mean 'grpo'?"),
    "key of another choice": ("train rooms-demo advantage.lam=1", "not a setting of grpo", "Known:"),
    "text for a number": ("train rooms-demo run.seed=yes", "run.seed = 'yes'", "valid integer"),
    "boolean for a number": ("train rooms-demo run.seed=true", "run.seed", "Give a number"),
    "text for a list": ("train rooms-demo sft.demos.files=a.jsonl", "is no list", "Write [a.jsonl]"),
    "folder of something else": ("train rooms-demo run.out=/", "holds no run of turngym", "run.out=FOLDER"),
    "absent model": ("train rooms-demo model.path=none/here", "No checkpoint folder 'none/here'", "Give a folder"),
    "unknown suite": ("bench room-easy --agent expert", "No suite 'room-easy'", "Did you mean 'rooms-easy'?"),
    "unknown agent": ("bench rooms-easy --agent exprt", "No agent 'exprt'", "Did you mean 'expert'?"),
    "absent checkpoint": ("bench rooms-easy --agent a/b", "No checkpoint folder 'a/b'", "Give a folder"),
    "unknown speed entry": ("speed textwrld", "No speed entry 'textwrld'", "Did you mean 'textworld'?"),
    "unknown speed entry in help": ("help speed textwrld", "No speed entry 'textwrld'", "Did you mean 'textworld'?"),
    "unknown setting of speed": ("speed textworld lvel=x", "lvel is not a setting", "Did you mean 'level'?"),
    "no games to time": ("speed textworld games=0", "games = 0", "greater than or equal to 1"),
    "one round of speed": ("speed textworld --rounds 1", "rounds = 1", "give 2 or more"),
    "folder for the record of speed": ("speed textworld --json .", "--json . is a folder", "Give a file"),
    "absent Python of a peer": ("speed textworld --peer-python none/python", "none/python", "Give the path"),
    "no checkpoint": ("bench rooms-easy --agent .", "holds no turngym_agent.json", "Give a checkpoint"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_a_line_with_the_next_step(case: str, turngym: Turngym) -> None:
    command, *needles = BAD[case]
    ended = turngym(*command.split())
    assert_bad_input(ended, *needles)
    assert ended.out == ""


EPISODE_FILES = {
    "no JSON": (b"hello\nhello\n", "line 1", "remove the line or the file"),
    "a line cut in the middle": (b'{"format": 1, "num\n{"format": 1}\n', "line 1", "remove the line"),
    "a field is missing": (b'{"format": 1, "number": 3}\n', "group: Field required", "remove the line"),
    "another format": (b'{"format": 99}\n', "format 99 is not 1", "Use the turngym version"),
    "binary": (bytes(range(128, 256)) + b"\n", "bad.jsonl", "file"),
}


@pytest.mark.parametrize("case", EPISODE_FILES)
def test_a_corrupt_episode_file_is_told_with_its_line(case: str, turngym: Turngym) -> None:
    content, *needles = EPISODE_FILES[case]
    Path("bad.jsonl").write_bytes(content)
    assert_bad_input(
        turngym("train", "rooms-demo", *TINY, "sft.demos.files=[bad.jsonl]"), "bad.jsonl", *needles
    )


@pytest.mark.parametrize("case", EPISODE_FILES)
def test_a_corrupt_file_has_no_page(case: str, turngym: Turngym) -> None:
    content, *needles = EPISODE_FILES[case]
    Path("bad.jsonl").write_bytes(content)
    assert_bad_input(turngym("view", "bad.jsonl"), "bad.jsonl", *needles)
    assert not Path("bad.html").exists()


VIEWS = {
    "empty": (("view", "empty.jsonl"), "empty.jsonl holds nothing", "Give a file of episodes"),
    "no way to keep": (("view", "good.jsonl", "--keep", "last"), "keep = 'last'", "newest, first or even"),
    "no episodes wanted": (("view", "good.jsonl", "--limit", "0"), "limit = 0", "one episode or more"),
    "another file's place": (("view", "good.jsonl", "--out", "notes.html"), "notes.html exists", "another file"),
    "a folder's place": (("view", "good.jsonl", "--out", "."), ". is a folder", "episodes.html"),
    "an unwritable place": (("view", "good.jsonl", "--out", "notes.html/x.html"), "notes.html", "another path"),
    "no tokenizer": (("view", "good.jsonl", "--tokenizer", "."), "holds no tokenizer.json", "checkpoint folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", VIEWS)
def test_a_page_that_cannot_be_written_is_told(case: str, turngym: Turngym) -> None:
    arguments, *needles = VIEWS[case]
    write_episodes("good.jsonl", play("Rooms-v0", agent="expert"))
    Path("empty.jsonl").touch()
    Path("notes.html").write_text("mine", encoding="utf-8")
    assert_bad_input(turngym(*arguments), *needles)
    assert Path("notes.html").read_text(encoding="utf-8") == "mine"


def test_a_page_is_written_and_named(turngym: Turngym) -> None:
    write_episodes("good.jsonl", play("Rooms-v0", agent="expert", episodes=3))
    assert turngym("view", "good.jsonl", "--limit", "2") == Ended(0, "Page: good.html\n", "")
    assert turngym("view", "good.jsonl", "good.jsonl", "--out", "two.html") == Ended(
        0, "Page: two.html\n", ""
    )
    assert Path("good.html").is_file() and Path("two.html").is_file()


def test_an_absent_episode_file_is_told(turngym: Turngym) -> None:
    ended = turngym("train", "rooms-demo", *TINY, "sft.demos.files=[none.jsonl]")
    assert_bad_input(ended, "Cannot read none.jsonl", "Give a file")


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("model: {preset: tiny\n", "not valid YAML"),
        ("hello\n", "key: value"),
        ("", "key: value"),
        ("envz: []\n", "Did you mean 'envs'?"),
    ],
)
def test_a_damaged_recipe_is_told(text: str, needle: str, turngym: Turngym) -> None:
    Path("my.yaml").write_text(text, encoding="utf-8")
    assert_bad_input(turngym("train", "my.yaml"), "my.yaml", needle)


@pytest.mark.parametrize("agent_file", [None, "{}", "{", '{"format": 2}'])
def test_a_damaged_checkpoint_is_told(agent_file: str | None, turngym: Turngym) -> None:
    Path("half").mkdir()
    if agent_file is not None:
        Path("half/turngym_agent.json").write_text(agent_file, encoding="utf-8")
    assert_bad_input(turngym("bench", "rooms-easy", "--agent", "half"), "half", "Give a c")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "TextWorld-v0"),
        ("train", "rooms-demo", "envs=[{id: TextWorld-v0}]"),
        ("bench", "textworld-w2o3q4", "--agent", "expert", "--max-tasks", "1"),
    ],
)
def test_a_missing_extra_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    without = "import sys; sys.modules['textworld'] = None; from turngym.cli import main; main()"
    ended = real(*arguments, folder=tmp_path, start=("-c", without))
    assert_bad_input(ended, "MissingExtraError", "turngym[textworld]")


def test_bad_input_in_a_process_of_its_own(tmp_path: Path) -> None:
    assert_bad_input(real("check", "Roms-v0", folder=tmp_path), "Did you mean 'turngym/Rooms-v0'?")
    assert_bad_input(real("train", "rooms-demo", "advantage=grop", folder=tmp_path), "Did you mean 'grpo'?")


def test_an_unwritable_place_is_told(turngym: Turngym) -> None:
    Path("file").write_text("", encoding="utf-8")
    ended = turngym("train", "rooms-demo", *TINY, "run.out=file/run")
    assert_bad_input(ended, "file/run", "Give another path")


def test_a_failed_start_does_not_claim_the_folder(turngym: Turngym) -> None:
    assert_bad_input(turngym("train", "rooms-demo", "envs.0.kwargs.level=huge", "run.out=r"), "level")
    ended = turngym("train", "rooms-demo", "model.path=none/here", "run.out=r")
    assert_bad_input(ended, "No checkpoint folder 'none/here'")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, turngym: Turngym) -> None:
    ended = turngym(command, "--help")
    assert ended.code == 0
    assert f"Usage: turngym {command}" in ended.out


def test_help_names_every_command(turngym: Turngym) -> None:
    ended = turngym("--help")
    assert ended.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in ended.out


def test_no_command_shows_the_help(turngym: Turngym) -> None:
    ended = turngym()
    assert ended.code == 2
    assert "Usage: turngym" in ended.err
    assert "Traceback" not in ended.err


def test_version(turngym: Turngym) -> None:
    assert turngym("--version") == Ended(0, "0.1.0\n", "")


def test_list_shows_the_kinds(turngym: Turngym) -> None:
    shown = turngym("list").out
    assert set(KINDS) <= {line.split()[0] for line in shown.splitlines()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("envs", "turngym/Rooms-v0"),
        ("envs", "turngym/TextWorld-v0"),
        ("suites", "rooms-easy"),
        ("recipes", "rooms-demo"),
        ("speed", "textworld"),
        ("advantage", "rloo"),
    ],
)
def test_list_of_a_kind(kind: str, name: str, turngym: Turngym) -> None:
    ended = turngym("list", kind)
    assert ended.code == 0
    assert name in {line.split()[0] for line in ended.out.splitlines()}


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        ("advantage rloo", "Settings of rloo"),
        ("advantage gae", "lam"),
        ("env Rooms-v0", "turngym/Rooms-v0"),
        pytest.param("env TextWorld-v0", "turngym/TextWorld-v0", marks=pytest.mark.textworld),
        ("speed textworld", "Settings of textworld"),
        ("recipe", "Stage rl"),
        ("recipe", "worker_memory_mb"),
    ],
)
def test_help_of_a_thing(arguments: str, needle: str, turngym: Turngym) -> None:
    ended = turngym("help", *arguments.split())
    assert ended.code == 0
    assert needle in ended.out


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_printed_as_it_stands(name: str, turngym: Turngym) -> None:
    ended = turngym("recipe", name)
    assert ended.code == 0
    assert ended.out == (ROOT / "training" / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")


def test_a_printed_recipe_can_be_trained_and_measured(turngym: Turngym) -> None:
    Path("my.yaml").write_text(turngym("recipe", "rooms-demo").out, encoding="utf-8")
    trained = turngym("train", "my.yaml", *TINY, "run.out=run")
    assert trained.code == 0
    assert "Done." in trained.out
    again = turngym("train", "my.yaml", *TINY, "run.out=run")
    assert again.code == 0
    measured = turngym(
        "bench", "rooms-easy", "--agent", "run", "--max-tasks", "2", "--repeats", "2",
        "--json", "result.json", "--episodes", "episodes.jsonl",
    )  # fmt: skip
    assert measured.code == 0, measured.err
    results = read_results(Path("result.json"))
    assert {mode: result.mode for mode, result in results.items()} == {
        "greedy": "greedy",
        "sampled": "sampled",
    }
    assert len(Path("episodes.jsonl").read_text(encoding="utf-8").splitlines()) == 2 + 2 * 2


def test_a_scripted_agent_is_measured(turngym: Turngym) -> None:
    ended = turngym(
        "bench", "rooms-easy", "--agent", "expert", "--max-tasks", "2", "--json", "new/result.json"
    )
    assert ended.code == 0, ended.err
    assert list(read_results(Path("new/result.json"))) == ["scripted"]


def test_workers_change_no_result_of_a_benchmark(turngym: Turngym) -> None:
    told = []
    for workers in ("0", "2"):
        path = Path(f"result-{workers}.json")
        ended = turngym(
            "bench", "rooms-easy", "--agent", "noisy-expert", "--max-tasks", "5",
            "--workers", workers, "--json", str(path),
        )  # fmt: skip
        assert ended.code == 0, ended.err
        (result,) = read_results(path).values()
        told.append(result.model_copy(update={"seconds": 0.0}))
    assert told[0] == told[1]


def test_check_passes_a_good_environment(turngym: Turngym) -> None:
    ended = turngym("check", "Rooms-v0")
    assert ended.code == 0, ended.out
    assert "fail" not in {line.split()[0] for line in ended.out.splitlines() if line.strip()}
    assert ended.out.splitlines()[-1] == "Rooms-v0: 17 checks passed"


def test_check_fails_a_broken_environment_of_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "broken_rooms.py").write_text(
        "import gymnasium\n"
        "from turngym.envs.rooms.env import RoomsEnv\n"
        "class Broken(RoomsEnv):\n"
        "    def act(self, command):\n"
        "        raise RuntimeError('no')\n"
        "gymnasium.register('my/Broken-v0', entry_point=Broken)\n",
        encoding="utf-8",
    )
    ended = real("check", "broken_rooms:my/Broken-v0", folder=tmp_path)
    assert ended.code == 1, ended
    assert "fail" in ended.out
    assert "Traceback" not in ended.out + ended.err
