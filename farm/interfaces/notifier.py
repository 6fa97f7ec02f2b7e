"""Sends a message to people. Implementations: `farm/drivers/notifiers/`."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Notice:
    """One message. `title` is one line, `text` a few; `facts` are what they say, by name.

    What comes from boards in it is bounded and without control characters.
    """

    event: str
    title: str
    text: str
    facts: Mapping[str, str | int | float] = field(default_factory=dict)

    def as_json(self) -> dict[str, str | int | float]:
        """Everything in one flat object."""
        return {**self.facts, "event": self.event, "title": self.title, "text": self.text}


class Notifier(Protocol):
    """One way to send. Made anew for each message, so that a secret is not kept for a night."""

    @abstractmethod
    async def send(self, notice: Notice) -> None:
        """Send it. The caller bounds the time by cancelling; nothing may be left running then.

        Raises NotifyError, whose text tells no secret (a URL is one).
        """
