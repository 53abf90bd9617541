"""What the drawings of a night have in common: their frame, colours, and the hours below them."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, LEFT, RIGHT = 960, 44, 12

COLOURS: Mapping[str, tuple[str, str]] = {
    "ink": ("#1b1f24", "#e6e8eb"),
    "rule": ("#c9ced6", "#4a515b"),
    "held": ("#9db8dd", "#41608c"),
    "used": ("#2f5d9c", "#a9c7f2"),
    "bad": ("#b3261e", "#ff8a80"),
}
"""By name, on a light and on a dark page."""


def colours_as_style(colours: Mapping[str, tuple[str, str]]) -> str:
    """They as CSS variables, the dark ones where the reader's page is dark."""
    light, dark = ("".join(f"--{name}:{each[n]};" for name, each in colours.items()) for n in (0, 1))
    return f"svg{{{light[:-1]}}}@media(prefers-color-scheme:dark){{svg{{{dark[:-1]}}}}}"


_STYLE = (
    colours_as_style(COLOURS) + ".ink{fill:var(--ink)}.rule{stroke:var(--rule)}"
    ".held{fill:var(--held)}.used{fill:var(--used)}"
    ".bad{fill:var(--bad);stroke:var(--bad)}text{font:12px system-ui,sans-serif}"
)


def document(
    name: str, height: int, title: str, description: str, drawn: Iterable[str], style: str = ""
) -> str:
    """An SVG of its own; its title and description say in words what is drawn. ``name``: beginning of its
    ids, one in a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc><style>{_STYLE}{style}</style>'
        f"{''.join(drawn)}</svg>"
    )


def full_hours(times: Sequence[str]) -> list[int]:
    """Places of the full hours among these RFC 3339 texts: 14 at most, equally far apart."""
    full = [place for place, at in enumerate(times) if at[14:16] == "00"]
    return full[:: max(1, -(-len(full) // 14))]
