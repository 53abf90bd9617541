"""The home that b4ee003 left after a night unpacked for a test, and what that
version's own commands said of it."""

import json
import tarfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "home-b4ee003.tar.xz"


@dataclass(frozen=True)
class FormerHome:
    """``home``: as the power cut left it; ``backup``: a back-up that b4ee003 made of it just before;
    ``said``: texts of its commands by name."""

    home: Path
    backup: Path
    said: dict[str, str]

    def data(self, name: str) -> Any:
        """What a command said as JSON."""
        return json.loads(self.said[f"{name}.json"])

    def requests(self, name: str) -> dict[int, dict[str, Any]]:
        """Requests that a command listed, by number."""
        return {each["seq"]: each for each in self.data(name)}

    @property
    def made(self) -> dict[str, int]:
        """Numbers of requests by what was done to them."""
        return {name: int(seq) for name, seq in self.data("made").items()}


def unpack(folder: Path) -> FormerHome:
    """The home in a folder of its own. Its clock goes on from where it stood when the power failed."""
    with tarfile.open(ARCHIVE) as tar:
        # Pythons before 3.11.4 know no filter, and later ones want one.
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        for entry in tar:
            (folder / entry.name).chmod(entry.mode)  # which filters leave to the umask
    said = {file.name: file.read_text() for file in (folder / "said").iterdir()}
    clock = json.loads((folder / "home" / "clock.json").read_text())
    stood = datetime.fromisoformat(json.loads(said["clock.json"])["at"]).timestamp()
    clock["real"] = time.time() - (stood - clock["origin"] / 1000) - 60
    (folder / "home" / "clock.json").write_text(json.dumps(clock))
    return FormerHome(folder / "home", folder / "backup.db", said)
