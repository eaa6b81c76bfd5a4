"""The new process of `check_processes`: plays what it reads from stdin and writes the answers to stdout."""

import json
import sys
from importlib import import_module
from operator import attrgetter
from typing import Any

from turngym.envs.checker.subject import play
from turngym.envs.pool import EnvRef


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)
    env = _reference(request).make(list_commands=True)
    lines = [
        line for one in request["plays"] for line in play(env, one["task"], one["seed"], one["commands"])
    ]
    sys.stdout.write(f"\n{json.dumps(lines)}\n")


def _reference(request: dict[str, Any]) -> EnvRef:
    if "env_id" in request:
        return EnvRef(request["env_id"], request["kwargs"])
    module, _, name = request["factory"].partition(":")
    return EnvRef(name, request["kwargs"], attrgetter(name)(import_module(module)))


if __name__ == "__main__":
    main()
