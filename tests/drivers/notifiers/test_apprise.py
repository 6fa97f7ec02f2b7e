"""apprise, the library itself, against a real server on loopback."""

import asyncio

import pytest

from farm.drivers.notifiers.apprise import AppriseNotifier, AppriseOptions
from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice
from farm.model.notify import NotifySpec
from tests.servers.webhook import Hooked, webhook

SPEC = NotifySpec(kind="apprise", url="env:X")
NOTICE = Notice("end", "farm: done", "Run r ended.")
PATIENCE_S = 30.0

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as it loads its plugins


def notifier(url: str | None) -> AppriseNotifier:
    return AppriseNotifier(SPEC, AppriseOptions(), url)


def address(hooked: Hooked) -> str:
    return hooked.url.replace("http://", "json://") + "?cto=100&rto=100"  # its own limits, in s


async def test_it_sends_title_and_text() -> None:
    async with webhook() as hooked:
        await notifier(address(hooked)).send(NOTICE)
    (body,) = hooked.bodies
    assert (body["title"], body["message"]) == (NOTICE.title, NOTICE.text)


async def test_a_refusal_is_told_and_no_address(caplog: pytest.LogCaptureFixture) -> None:
    async with webhook() as hooked:
        hooked.answer(403)
        with pytest.raises(NotifyError, match=r"^apprise could not send it$"):
            await notifier(address(hooked)).send(NOTICE)
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("url", [None, "", "no-such-service://SECRET"])
async def test_an_address_that_it_does_not_know_is_told(
    url: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NotifyError, match="does not understand"):
        await notifier(url).send(NOTICE)
    assert "SECRET" not in caplog.text


async def test_a_server_that_hangs_is_left_behind() -> None:
    async with webhook() as hooked:
        hooked.is_hanging = True
        task = asyncio.create_task(notifier(address(hooked)).send(NOTICE))
        async with asyncio.timeout(PATIENCE_S):
            while not hooked.bodies:  # noqa: ASYNC110 - of another thread's request
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_spec_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="url"):
        AppriseNotifier(NotifySpec(kind="apprise"), AppriseOptions(), None)
