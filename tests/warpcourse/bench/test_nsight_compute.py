"""What is read of ncu's output."""

import pytest

from warpcourse.bench.nsight_compute import ProfiledLaunch, parse

METRIC = "launch__registers_per_thread"


def test_a_launch_per_line():
    output = (
        f'==PROF== done\n"ID","Kernel Name","Block Size","Grid Size","{METRIC}"\n'
        '"","","","","register/thread"\n"0","gemm<1>","(64, 1, 1)","(4, 4, 1)","1,234"\n'
    )
    assert parse(output, [METRIC]) == [ProfiledLaunch("gemm<1>", "(4, 4, 1)", "(64, 1, 1)", {METRIC: 1234.0})]


def test_output_without_a_table_is_an_error():
    with pytest.raises(RuntimeError, match="==ERROR== no permission"):
        parse("==ERROR== no permission\n", [])
