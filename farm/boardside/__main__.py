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
        return 0
    return receive(work, root, pyz)


def receive(work, root, pyz):
    """Store a tar stream from stdin; one JSON line tells how it went."""
    import blobs
    from place import Place
    from wire import RequestError, as_request_error, line

    place = Place(work, root, pyz)
    try:
        place.make()
        with os.fdopen(0, "rb", closefd=False) as stream:
            count, total = blobs.receive(place, stream)
        answer = {"farm": "received", "ok": True, "files": count, "bytes": total}
    except RequestError as error:
        answer = {"farm": "received", "ok": False, "error": error.as_answer()}
    except OSError as error:
        error = as_request_error(error).as_answer()
        answer = {"farm": "received", "ok": False, "error": error}
    os.write(1, line(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
