"""Layers in rows: each below what it reads, and lines that pass a row have a place in it."""

from warpcourse.bench.graph_rows import rows


def test_a_line_past_two_rows_has_a_place_in_each_and_two_readers_share_it():
    layers = [("x", [], "x"), ("a", ["x"], "a"), ("b", ["a"], "b"), ("c", ["b", "x"], "c"), ("d", ["c", "x"], "d")]
    found = rows(layers)
    assert [[place.content for place in row] for row in found] == [["x"], [None, "a"], [None, "b"], [None, "c"], ["d"]]
    (x,), (first, a), (second, _), (third, c), (d,) = found
    assert x.below == [a, first]
    assert (first.above, second.above, third.above) == ([x], [first], [second])
    assert second.below == [c, third]
    assert d.above == [c, third]
    assert [place.number for place in (x, a, first, third)] == [0, 1, 3, 4]


def test_a_layer_that_reads_another_twice_has_one_line_and_unknown_names_have_none():
    ((x,), (double,)) = rows([("x", ["nowhere"], "x"), ("double", ["x", "x"], "double")])
    assert double.above == [x]
    assert x.below == [double]
