"""Rules of a sweep: which cells an `exclude` entry means."""

from collections.abc import Mapping, Sequence

from farm.model.record import Scalar
from farm.model.sweep import Rule

RESERVED = ("board", "profile", "power_mode", "payload")
"""Keys of rules and of `include` that are no parameters."""


def is_excluded(
    rules: Sequence[Rule], facts: Mapping[str, str], parameters: Mapping[str, Scalar]
) -> bool:
    """Whether a rule matches in all its keys. An empty rule matches nothing.

    Args:
        rules: each maps keys to a value, or to a tuple of which any may match.
        facts: the cell's values of `RESERVED`; a cell without a board lacks that key.
        parameters: the cell's parameters.
    """
    return any(
        rule and all(_matches(key, wanted, facts, parameters) for key, wanted in rule.items())
        for rule in rules
    )


def _matches(
    key: str,
    wanted: Scalar | tuple[Scalar, ...],
    facts: Mapping[str, str],
    parameters: Mapping[str, Scalar],
) -> bool:
    if key in RESERVED:
        actual: Scalar | None = facts.get(key)
    else:
        actual = parameters.get(key)
    if actual is None:
        return False
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(_is_same(key, actual, value) for value in values)


def _is_same(key: str, actual: Scalar, value: Scalar) -> bool:
    if key == "power_mode" and isinstance(actual, str) and isinstance(value, str):
        return actual.lower() == value.lower()
    # Python holds True equal to 1; a rule for batch 1 must not match a switch.
    return isinstance(actual, bool) == isinstance(value, bool) and actual == value
