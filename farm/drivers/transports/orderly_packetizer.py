"""Keeps paramiko from speaking on a channel that it has closed."""

import socket
import threading

import paramiko
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EOF, MSG_CHANNEL_WINDOW_ADJUST
from paramiko.packet import Packetizer

_LATE = frozenset({MSG_CHANNEL_DATA, MSG_CHANNEL_EOF, MSG_CHANNEL_WINDOW_ADJUST})


class OrderlyPacketizer(Packetizer):
    """Drops what a thread wants to send for a channel that is closed by then.

    paramiko makes a message while it holds the channel's lock and sends it afterwards. When the
    board's close comes between the two, the answer to it overtakes the message, and OpenSSH ends
    the whole connection ("ieof packet referred to nonexistent channel", seen on a busy host). A
    channel is marked closed before that answer is sent, and paramiko sends one message at a time:
    looking here, at the last moment, is enough.
    """

    def __init__(self, wire: socket.socket) -> None:
        super().__init__(wire)
        self._speaker = threading.local()

    def speak_for(self, channel: paramiko.Channel) -> None:
        """From now on, what this thread sends is for that channel."""
        self._speaker.channel = channel

    def send_message(self, data: paramiko.Message) -> None:
        """Send a packet, unless it comes too late."""
        channel: paramiko.Channel | None = getattr(self._speaker, "channel", None)
        is_closed = channel is not None and channel.closed
        if not is_closed or data.asbytes()[0] not in _LATE:
            super().send_message(data)


def speak_for(channel: paramiko.Channel) -> None:
    """Tell the channel's connection that the calling thread works for it alone."""
    transport = channel.get_transport()
    if isinstance(transport.packetizer, OrderlyPacketizer):
        transport.packetizer.speak_for(channel)
