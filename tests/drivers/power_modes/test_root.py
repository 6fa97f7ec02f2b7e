"""sudo's refusals as the agent tells them: results, which only some callers take for errors."""

import pytest

from farm.drivers.power_modes.root import (
    is_refused_root,
    require_root,
    run_as_root,
    sudoers_remedy,
)
from farm.errors import AgentError, PowerModeError
from farm.interfaces.transport import CommandResult
from farm.testing.fakes import FakeBoardAgent, FakeClock

SUDO = "sudo: a password is required"


async def test_the_agents_own_word_on_sudo_is_a_result() -> None:
    agent = FakeBoardAgent(FakeClock())
    agent.fail["run"].append(AgentError("run nvpmodel as root", SUDO))
    result = await run_as_root(agent, ["nvpmodel", "-q"], timeout_s=1)
    assert is_refused_root(result)
    with pytest.raises(PowerModeError, match="needs root: sudo: a password") as caught:
        require_root(result, "lock clocks", sudoers_remedy(["/usr/bin/tee /run/x", "/bin/y"]))
    assert caught.value.remedy.endswith("NOPASSWD: /usr/bin/tee /run/x, /bin/y")


async def test_other_faults_of_the_agent_stay_faults() -> None:
    agent = FakeBoardAgent(FakeClock())
    agent.fail["run"].append(AgentError("run", "argv is empty (bad_request)"))
    with pytest.raises(AgentError, match="bad_request"):
        await run_as_root(agent, ["x"], timeout_s=1)


def test_a_command_that_ran_was_not_refused() -> None:
    result = CommandResult(("x",), 0, b"", b"as a root user", 0.0)
    assert not is_refused_root(result)
    require_root(result, "x", "do something")
