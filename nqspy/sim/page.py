"""Everything about some runs as one page of HTML, which needs no network and no other file."""

from collections.abc import Iterable, Sequence
from html import escape

from nqspy.report.drawing import svg_of
from nqspy.report.night_pages import STYLE
from nqspy.sim.comparing import compare
from nqspy.sim.pictures.album import DRAWN
from nqspy.sim.rows import TextTable, comparison_table, tables_of
from nqspy.sim.runs import SimulatedRun


def page(title: str, runs: Sequence[SimulatedRun], names: Iterable[str]) -> str:
    """Pictures of these names (`album.names_of`), and all tables: over several seeds only what compares
    them."""
    pictures = "".join(_picture(name, runs) for name in names)
    tables = "".join(map(_table, _tables(runs)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"{pictures}{tables}</body></html>\n"
    )


def _picture(name: str, runs: Sequence[SimulatedRun]) -> str:
    drawing = DRAWN[name](runs)
    return f"<h2>{escape(drawing.title)}</h2><figure>{svg_of(drawing)}</figure>"


def _tables(runs: Sequence[SimulatedRun]) -> Iterable[TextTable]:
    if len(runs) > 1:
        yield comparison_table("Compared", compare(runs))
    if len({run.seed for run in runs}) == 1:
        for run in runs:
            yield from tables_of(run.found, run.label)


def _table(table: TextTable) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    body = "".join(f"<tr>{''.join(_cells(table, row))}</tr>" for row in table.rows)
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    return f'<h2>{escape(table.title)}</h2><div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def _cells(table: TextTable, row: Sequence[str]) -> Iterable[str]:
    for place, cell in enumerate(row):
        yield f"<td{'' if place < table.left else ' class=n'}>{escape(cell)}</td>"
