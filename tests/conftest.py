"""For all tests: what the process that started pytest left behind must not decide them."""

import signal

# Signals that are ignored stay so in every process that a test starts: SIGHUP under nohup, SIGINT
# and SIGQUIT in a shell's background job. What must end by them would stay.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
