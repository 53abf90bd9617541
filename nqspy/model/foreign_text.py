"""Texts from other systems: byte order marks, CR LF, UTF-16. Clients import it, so it imports nothing."""

MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class ForeignText(Exception):
    """A text that cannot be read; its message says what would be right."""


def converted(data: bytes) -> tuple[bytes, list[str]]:
    """Return the text as Linux writes it, and a note for each change. Raises ForeignText for UTF-16. A text
    with a NUL is a program's and stays as it is; so do a few CR LF among lines that end in LF."""
    even, odd = data[:4:2], data[1:4:2]  # of the first two characters
    ascii_utf16 = any(
        high == b"\0\0" and low.isascii() and b"\0" not in low for low, high in ((even, odd), (odd, even))
    )
    if data[:2] in _UTF16 or ascii_utf16:
        raise ForeignText("it is UTF-16 text; save it as UTF-8")
    notes: list[str] = []
    if data.startswith(MARK):
        data = data.removeprefix(MARK)
        notes.append("the byte order mark at its beginning was left out")
    found = 0 if b"\0" in data else data.count(b"\r\n")
    if found and (data.find(b"\n") == data.find(b"\r\n") + 1 or 2 * found > data.count(b"\n")):
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
        notes.append("its line ends of Windows (CR LF) were converted to LF")
    elif found:
        line = data[: data.find(b"\r\n")].count(b"\n") + 1
        notes.append(f"line {line} ends in CR LF, as lines of Windows do, and stays so; others end in LF")
    return data, notes
