"""What a command is asked about itself: its version, its help, completions. Only loaded then."""

import os


def answer(command: str, words: list[str]) -> int:
    """Answers, and gives the exit status."""
    if words[:1] != ["--version"] or f"_{command.upper()}_COMPLETE" in os.environ:
        from nqspy.cli.help import answer as help_answer

        return help_answer(command, words)
    if len(words) > 1:
        os.write(2, f"{command}: --version stands alone, without {words[1]!a}\n".encode())
        return 2
    os.write(1, f"pbs_version = {version()}\n".encode())
    return 0


def version() -> str:
    """The version of nqspy: digits and dots, as PBS clients read them."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("nqspy")
    except PackageNotFoundError:
        return "0.0.0"  # run from its sources
