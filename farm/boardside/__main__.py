"""The agent as a program: ``farm-agent.pyz serve|receive WORK [ROOT]``."""

import os
import sys


def main(argv):
    """Dispatch; the exit status."""
    if len(argv) not in (3, 4) or argv[1] not in ("serve", "receive"):
        sys.stderr.write("usage: farm-agent.pyz serve|receive WORK [ROOT]\n")
        return 2
    pyz, work, root = os.path.abspath(argv[0]), argv[2], argv[3] if len(argv) == 4 else ""
    if argv[1] == "serve":
        import agent

        agent.serve(work, root, pyz)
    else:
        import intake

        intake.main(os.path.abspath(os.path.expanduser(work)), root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
