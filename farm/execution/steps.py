"""How long the steps of a trial take, for its record."""

import contextlib
from collections.abc import Iterator

from farm.interfaces.clock import Clock
from farm.model.attempt import StepTime


@contextlib.contextmanager
def timed(clock: Clock, steps: list[StepTime], name: str) -> Iterator[None]:
    """Add a step with its seconds, however it ends."""
    begin_s = clock.monotonic()
    try:
        yield
    finally:
        steps.append(StepTime(step=name, seconds=round(clock.monotonic() - begin_s, 6)))
