"""What a command is asked about itself: its version, its help, completions. Only loaded then."""

import os


def answer(command: str, words: list[str]) -> int:
    """Answers, and gives the exit status."""
    try:
        return _answered(command, words)
    except OSError as error:
        os.write(2, f"{command}: the output cannot be written: {error.strerror}\n".encode())
        return 1


def _answered(command: str, words: list[str]) -> int:
    if words[:1] != ["--version"] or f"_{command.upper()}_COMPLETE" in os.environ:
        from nqspy.cli.help import answer as help_answer

        return help_answer(command, words)
    if len(words) > 1:
        os.write(2, f"{command}: --version stands alone, without {words[1]!a}\n".encode())
        return 2
    from nqspy.rpc.version import version

    os.write(1, f"pbs_version = {version()}\n".encode())
    return 0
