"""Opens what the inventory's ``notify:`` names, and tells of a run's end."""

import contextlib
import socket
from collections import Counter
from collections.abc import Mapping

from farm.config.secrets import resolve_secret
from farm.drivers.registry import NOTIFIERS, known, notifier_class
from farm.errors import ConfigError, DriverError, FarmError
from farm.execution.notices import Hook, check_notice, send
from farm.interfaces.notifier import Notifier
from farm.model.attempt import Outcome, TrialState
from farm.model.notify import NotifySpec
from farm.pipeline.lab import Lab
from farm.store.database import Store


def open_hooks(lab: Lab) -> tuple[Hook, ...]:
    """The hooks of a lab. Raises ConfigError for an entry that can never work.

    What may be missing for now (a secret, an optional library) is found by `hook_faults`, and
    again when a message is sent.
    """
    return tuple(_hook(lab, index, spec) for index, spec in enumerate(lab.inventory.notify))


def hook_faults(hooks: tuple[Hook, ...]) -> list[str]:
    """Hooks that could not send if they had to now, with the reason."""
    faults = []
    for hook in hooks:
        try:
            hook.make()
        except FarmError as error:
            faults.append(f"{hook.name}: {error}")
    return faults


async def send_test(lab: Lab) -> list[tuple[str, str]]:
    """Send a test by each hook: (its name, "" or why it did not work). Raises ConfigError."""
    notice = check_notice(socket.gethostname())
    return [(hook.name, await send(hook, notice)) for hook in open_hooks(lab)]


def trial_counts(store: Store, run_id: str) -> Mapping[str, int]:
    """Trials by state; ``invalid`` are those of them whose last word is an invalid measurement."""
    results = store.results(run_id)
    states = Counter(one.state for one in results)
    invalid = sum(
        one.outcome is Outcome.INVALID and one.state is not TrialState.DONE for one in results
    )
    always = (TrialState.DONE, TrialState.FAILED, TrialState.PENDING)
    counts = {state.value: states[state] for state in always}
    counts |= {state.value: states[state] for state in TrialState if states[state]}
    return {**counts, "invalid": invalid}


def _hook(lab: Lab, index: int, spec: NotifySpec) -> Hook:
    if spec.kind not in known("farm.notifiers", NOTIFIERS):
        notifier_class(spec.kind)  # raises, with the names that there are
    with contextlib.suppress(DriverError):  # a library that may be installed before it is needed
        _check(lab, index, spec)

    def make() -> Notifier:
        secret = resolve_secret(spec.url) if spec.url else None
        return _make(lab, index, spec, secret)

    return Hook(f"notify {index + 1} ({spec.kind})", spec, make)


def _make(lab: Lab, index: int, spec: NotifySpec, secret: str | None) -> Notifier:
    notifier_type = notifier_class(spec.kind)
    options = lab.document.validate(("notify", index, "options"), notifier_type.Options)
    return notifier_type(spec, options, secret)


def _check(lab: Lab, index: int, spec: NotifySpec) -> None:
    """Refuse what no change of the surroundings would mend."""
    try:
        _make(lab, index, spec, None)
    except ConfigError as error:
        if error.line:
            raise
        raise lab.document.error(("notify", index), error.message) from error
