"""farm: benchmark sweeps over a rack of boards, with the power read at the socket."""

__version__ = "0.1.0"
