"""For all tests: what the process that started pytest left behind must not decide them."""

import signal

# Under nohup SIGHUP is ignored, and so by every process that a test starts: those that must end
# when their SSH session does would stay.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
