"""A request as far as options have described it; `draft` fills it and makes the message."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nqspy.cli.fast import Given
    from nqspy.cli.resources import Listed


class SlurmSheet:
    """A request as far as Slurm's options have described it, before `slurm.finish` resolves them.
    ``numbers``: counts by target; ``memory``: target and bytes; ``by``: options by target."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.memory: tuple[str, int] | None = None
        self.stdout = self.stderr = ""
        self.export = ["ALL"]
        self.by: dict[str, Given] = {}


class RequestSheet:
    """A request as options describe it; ``spec``, ``ask``, ``others``, ``output``, ``mail`` have fields of
    `model.requests.Spec` by name.

    ``listed``: resources by name, ``consumables``: the units they sum to; ``notes``: its attributes;
    ``depends``: those of ``-W depend``; ``wished``: attributes of ``-W`` so far; ``array_limit``: indices at
    a time (0: any); ``variables`` to pass on, or all (``exports``); ``block``: wait for its end; ``wrapped``:
    a line instead of a script; ``date``: function that reads a date; ``workdir``: where it is submitted;
    ``warnings``: on what has no effect; ``remarks``: shown without a terminal too."""

    def __init__(self, dialect: str, workdir: str, date: "Callable[[str], int]") -> None:
        self.dialect = dialect
        self.workdir = workdir
        self.date = date
        self.spec: dict[str, object] = {}
        self.ask: dict[str, int] = {}
        self.others: dict[str, int] = {}
        self.consumables: dict[str, int] = {}
        self.output: dict[str, object] = {}
        self.mail: dict[str, object] = {}
        self.notes: list[str] = []
        self.needs: list[str] = []
        self.variables: list[str] = []
        self.warnings: list[str] = []
        self.remarks: list[str] = []
        self.exports = self.delete_script = self.block = False
        self.user = ""
        self.wished: set[str] = set()
        self.array_limit: int | None = None
        self.depends: list[str] = []
        self.listed: dict[str, Listed] = {}
        self.wrapped: str | None = None
        self.slurm: SlurmSheet | None = None
