"""A request as far as options have described it; `draft` fills it and makes the message of it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nqspy.cli.resources import Listed


class RequestSheet:
    """``spec``, ``ask``, ``others``, ``output``, ``mail`` hold fields of `model.requests.Spec` by name.

    ``listed``: resources by name, ``consumables``: the units they come to; ``notes``: its attributes;
    ``depends``: those that say what it waits for by ``-W``; ``wished``: what ``-W`` has said;
    ``array_limit``: how many indices it lets run at a time (0: any);
    ``variables`` to take along, or all (``exports``); ``block``: wait for its end; ``wrapped``: a line that
    stands for the script; ``slurm``: what Slurm's options have said (`slurm.SlurmSheet`); ``date`` reads a
    date; ``workdir``: where it is handed in; ``warnings``: what is read and yet not done; ``remarks``: what
    is told without a terminal too.
    """

    def __init__(self, dialect: str, workdir: str, date: "Callable[[str], int]") -> None:
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
        self.exports = False
        self.user = ""
        self.delete_script = False
        self.block = False
        self.wished: set[str] = set()
        self.array_limit: int | None = None
        self.depends: list[str] = []
        self.listed: dict[str, Listed] = {}
        self.wrapped: str | None = None
        self.slurm: object = None
        self.dialect = dialect
        self.workdir = workdir
        self.date = date
