"""For a run that nobody watches: the host's log and the store have it all."""

from farm.interfaces.sinks import Progress, RunEvent


class SilentView(Progress):
    """Shows nothing."""

    def event(self, event: RunEvent) -> None:
        """Not shown."""

    def watts(self, board: str, power_w: float) -> None:
        """Not shown."""
