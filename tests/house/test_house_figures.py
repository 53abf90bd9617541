"""What one home each has been given to stays there: the figures of `scripts/house` do not slip."""

import runpy
from statistics import median, quantiles

import pytest
from house.checkout import ROOT

FIGURES = runpy.run_path(str(ROOT / "scripts" / "house_figures.py"))


def test_no_two_public_classes_have_one_name():
    assert FIGURES["class_names"]() == {}


def test_the_contract_of_circles_has_no_exemption():
    assert FIGURES["exemptions"]() == []


def test_one_file_alone_writes_the_state_of_a_request():
    assert FIGURES["writers_of_state"]() == ["nqspy/model/transitions.py"]


@pytest.mark.parametrize(
    ("word", "most"),
    [
        ("swap", 13),
        ("probe", 16),
        ("calendar or shift_end", 16),
    ],
)
def test_the_name_of_a_feature_stands_in_few_files(word, most):
    files = FIGURES["files_with"](FIGURES["WORDS"][word])
    assert len(files) <= most, files


def test_functions_fit_a_screen():
    lengths = FIGURES["lengths"]()
    assert median(lengths) <= 8
    assert quantiles(lengths, n=10)[-1] <= 30
    assert max(lengths) <= 60


def test_each_figure_is_told_once():
    names = [each.name for each in FIGURES["figures"]()]
    assert len(names) == len(set(names)) >= 10
