"""The Pareto set: the points that no other point beats."""

from collections.abc import Sequence
from math import isnan

from farm.errors import AnalysisError


def pareto_front(points: Sequence[tuple[float, ...]], maximise: Sequence[bool]) -> list[int]:
    """Indices, ascending, of the points that no other point dominates.

    A point dominates another if it is at least as good in every dimension and better in one;
    so equal points are kept together. One criterion per dimension: `maximise` says whether
    more is better. Takes n times the size of the front.

    Raises:
        AnalysisError: a point of another dimension, or with a NaN.
    """
    oriented: list[tuple[float, ...]] = []
    for at, point in enumerate(points):
        if len(point) != len(maximise):
            raise AnalysisError(f"point {at} has {len(point)} dimensions and not {len(maximise)}")
        if any(isnan(value) for value in point):
            raise AnalysisError(f"point {at} has an unknown value: {point}")
        signed = zip(point, maximise, strict=True)
        oriented.append(tuple(value if is_more else -value for value, is_more in signed))
    # Best first: a point can only be dominated by one before it, and then also by one of
    # the front, because dominance is transitive.
    front: list[int] = []
    for at in sorted(range(len(points)), key=oriented.__getitem__, reverse=True):
        if not any(_dominates(oriented[member], oriented[at]) for member in front):
            front.append(at)
    return sorted(front)


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
