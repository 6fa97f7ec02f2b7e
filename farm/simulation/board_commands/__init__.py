"""Commands that a simulated board offers in its `bin`.

They run in the board's own processes, with nothing but the standard library, and know the
board's files through the environment's ``FARM_ROOT`` alone.
"""
