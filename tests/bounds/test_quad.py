"""The quadratic bound beside McAllester's."""

from pactrain.bounds import Classic, Quad


def test_quad_is_not_always_below_mcallester() -> None:
    assert Quad(10000, 0.05).value(0.2, 500) > Classic(10000, 0.05).value(0.2, 500)
    assert Quad(1000, 0.05).value(0.0005, 20) < Classic(1000, 0.05).value(0.0005, 20)
