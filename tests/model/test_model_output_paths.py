"""One path for one file, however it is written."""

import pytest

from nqspy.model.output_paths import plain

PATHS = {
    "/w/out": "/w/out", "/w/./out": "/w/out", "/w//out": "/w/out", "//w/out": "/w/out",
    "/w/a/../out": "/w/out",
    "/../w/out": "/w/out", "/w/.out": "/w/.out", "/w/..out": "/w/..out", "/w/out.": "/w/out.",
    "/w/logs/": "/w/logs/", "/w/logs//": "/w/logs/", "/w/logs/.": "/w/logs/", "/w/logs/..": "/w/",
    "/w/../": "/", "/": "/", "/dev/./null": "/dev/null", "out": "out", "./out": "out", "a/../out": "out",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_known_however_it_is_written(path):
    assert plain(path) == PATHS[path]
    assert plain(plain(path)) == PATHS[path]
