import pytest

from farm.errors import ConfigError
from farm.model.payload import Parameter
from farm.model.record import Scalar
from farm.planning.values import fill_parameters
from tests.planning.builders import payload

MANIFEST = payload(
    parameters={
        "threads": Parameter(type="int", minimum=1, maximum=8, default=4),
        "model": Parameter(type="str", choices=("a", "b")),
        "rate": Parameter(type="float", default=0.5),
        "is_fused": Parameter(type="bool", default=False),
    }
).manifest


def test_defaults_fill_what_is_not_given() -> None:
    filled = fill_parameters(MANIFEST, {"model": "a"})
    assert filled == {"is_fused": False, "model": "a", "rate": 0.5, "threads": 4}
    assert list(filled) == sorted(filled)


def test_a_whole_number_becomes_a_float_where_the_manifest_says_float() -> None:
    assert type(fill_parameters(MANIFEST, {"model": "a", "rate": 2})["rate"]) is float


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "'model' has no default"),
        ({"model": "c"}, "none of a, b"),
        ({"model": "a", "threds": 1}, "no parameter 'threds'; did you mean threads"),
        ({"model": "a", "threads": 0}, "below the minimum 1"),
        ({"model": "a", "threads": 9}, "above the maximum 8"),
        ({"model": "a", "threads": True}, "not of type int"),
        ({"model": "a", "threads": 2.0}, "not of type int"),
        ({"model": "a", "is_fused": 1}, "not of type bool"),
        ({"model": 1}, "not of type str"),
        ({"model": "a", "rate": float("nan")}, "not a finite number"),
        ({"model": "a", "rate": True}, "not of type float"),
    ],
)
def test_what_the_manifest_does_not_allow_is_an_error(
    given: dict[str, Scalar], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        fill_parameters(MANIFEST, given)
