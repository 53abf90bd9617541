"""The night report as pages: self-contained HTML, readable in light and dark, without links to elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from nqspy.report.pages import figures, paragraphs, period, sections
from nqspy.report.utilisation_svg import quota_svg, utilisation_svg

Data = Mapping[str, Any]

MOST = 2_000
"""Most rows of a table on a page; the data have all."""

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.15rem .6rem;border-bottom:1px solid #8884;text-align:left}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}td{overflow-wrap:anywhere}"
    "svg{width:100%;height:auto}.wide{overflow-x:auto}"
)


def night_html(data: Data) -> str:
    """Return the whole report, or that of a department (`departments.page_of`), as one page of HTML."""
    title = f"Night of {data['date']}" + (f", {data['group']}" if data.get("group") else "")
    clock = f"clock: {data['clock']}" if data["clock"] else ""
    notes = "".join(f"<p>{escape(text)}</p>" for text in (period(data), *figures(data), clock) if text)
    lists = tables = ""
    for section in sections(data):
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in section.rows[:MOST])
        more = len(section.rows) - MOST
        rest = f"<p>and {more} more, see night.json</p>" if more > 0 else ""
        tables += table_html(section.title, section.heads, body) + rest if body else ""
    for name, lines in paragraphs(data):
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
        lists += f"<h2>{escape(name)}</h2><ul>{items}</ul>" if lines else ""
    parts = ""
    if any(row["groups"] for row in data["parts"]["rows"]):
        heading = f"Departments: what they used and were entitled to, night of {data['date']}"
        parts = f"<h2>Quotas</h2><figure>{quota_svg(data['parts'], heading)}</figure>"
    line = f"<p><strong>{escape(data['line'])}</strong></p>"
    picture = f"<figure>{utilisation_svg(data)}</figure>"
    made = f"<p><small>made {escape(data['made'])}</small></p>"
    return page_html(title, f"{line}{notes}{picture}{parts}{lists}{tables}{made}")


def page_html(title: str, body: str) -> str:
    """Return a complete HTML page, with its title (plain text) as its first heading; ``body`` is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"{body}</body></html>\n"
    )


def table_html(title: str, heads: Sequence[str], rows: str) -> str:
    """Return a table below its title, with or without ``heads``; ``rows`` are HTML."""
    cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    head = f"<thead><tr>{cells}</tr></thead>" if heads else ""
    return f'<h2>{escape(title)}</h2><div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'


def _cell(text: str) -> str:
    number = text.replace(".", "").replace("-", "").replace("+", "").isdigit()
    return f"<td{' class=n' if number else ''}>{escape(text)}</td>"
