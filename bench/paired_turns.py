"""Two turns of a bench at the same time, which begin each measurement together."""

import subprocess
import sys
from collections.abc import Sequence

_MEETING = "wait for the other turn\n"


def meet() -> None:
    """Wait until the other turn is about to begin the same measurement."""
    print(_MEETING, end="", flush=True)
    sys.stdin.readline()


def answers_of_both(commands: Sequence[Sequence[str]]) -> list[str]:
    """Run the commands at the same time; return the last line that each prints.

    Raises ValueError if a command fails.
    """
    turns = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    while not any(answers := [_next_answer(turn) for turn in turns]):
        for turn in turns:
            print(file=turn.stdin, flush=True)
    for turn in turns:
        turn.communicate()
    if failed := [turn.args for turn in turns if turn.returncode]:
        raise ValueError(f"failed: {failed}")
    return answers


def _next_answer(turn: "subprocess.Popen[str]") -> str:
    """Return the last line of a turn; empty if the turn waits for the other turn."""
    answer = ""
    for line in turn.stdout or ():
        if line == _MEETING:
            return ""
        answer = line
    if not answer:
        raise ValueError(f"failed: {turn.args!r}")
    return answer
