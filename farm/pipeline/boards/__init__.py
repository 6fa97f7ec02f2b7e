"""What is done to boards outside of runs, on all of a selection at once.

reach      opens boards, bounded; one answer a board, a fault of one stops no other
upkeep     host keys, caches
probe      what a board is
doctor     whether a run tonight would fail, by findings.py (pure) and meter_look
needs      which commands a board must let farm run as root; sudoers writes them down
modes      power modes, set and put back
execute    any command, streamed
shell      a login shell in the user's terminal
reboot     reboot and wait for the new boot id
notes      results/boards/: what was learned of boards
"""
