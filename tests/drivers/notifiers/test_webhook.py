"""The webhook against a real server on loopback."""

import pytest

from farm.drivers.notifiers import webhook as driver
from farm.drivers.notifiers.webhook import TRIES, WebhookNotifier, WebhookOptions
from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice
from farm.model.notify import NotifySpec
from tests.servers.webhook import webhook

SPEC = NotifySpec(kind="webhook", url="env:X")
NOTICE = Notice("end", "farm: done", "Run r ended.", {"run": "r", "done": 3})


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "BACKOFF_S", (0.0, 0.0))


def notifier(url: str | None, **options: str) -> WebhookNotifier:
    return WebhookNotifier(SPEC, WebhookOptions(**options), url)


async def test_it_posts_one_flat_object() -> None:
    async with webhook() as hooked:
        await notifier(hooked.url + "\n", text_key="content").send(NOTICE)
    (body,) = hooked.bodies
    assert body == {
        "event": "end",
        "title": "farm: done",
        "text": "Run r ended.",
        "content": "Run r ended.",
        "run": "r",
        "done": 3,
    }


async def test_what_may_pass_is_tried_again() -> None:
    async with webhook() as hooked:
        hooked.answer(500, 429)
        await notifier(hooked.url).send(NOTICE)
    assert len(hooked.bodies) == TRIES


async def test_a_server_that_stays_broken_is_given_up() -> None:
    async with webhook() as hooked:
        hooked.answer(*[503] * 9)
        with pytest.raises(NotifyError, match=r"127\.0\.0\.1 answered 503, 3 times") as caught:
            await notifier(hooked.url).send(NOTICE)
    assert len(hooked.bodies) == TRIES
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("status", [302, 400, 403, 404])
async def test_a_refusal_is_final(status: int) -> None:
    async with webhook() as hooked:
        hooked.answer(status, location="/elsewhere")
        with pytest.raises(NotifyError, match=f"answered {status}$"):
            await notifier(hooked.url).send(NOTICE)
    assert len(hooked.bodies) == 1


async def test_a_redirect_is_followed_on_the_same_server() -> None:
    async with webhook() as hooked:
        hooked.answer(307, location="/moved")
        await notifier(hooked.url).send(NOTICE)
    assert len(hooked.bodies) == 2


async def test_a_redirect_elsewhere_is_not_followed() -> None:
    async with webhook() as hooked, webhook() as other:
        hooked.answer(308, location=other.url)
        with pytest.raises(NotifyError, match="not followed"):
            await notifier(hooked.url).send(NOTICE)
    assert other.bodies == []


async def test_redirects_in_a_circle_end() -> None:
    async with webhook() as hooked:
        hooked.answer(*[307] * 9, location="/again")
        with pytest.raises(NotifyError, match="more than 3 redirects"):
            await notifier(hooked.url).send(NOTICE)


async def test_nobody_there_is_told_without_the_address() -> None:
    async with webhook() as hooked:
        url = hooked.url
    with pytest.raises(NotifyError, match=r"127\.0\.0\.1: Client\w+, 3 times") as caught:
        await notifier(url).send(NOTICE)
    assert "SECRET" not in str(caught.value)


async def test_a_server_without_tls_is_not_talked_to_in_the_open() -> None:
    async with webhook() as hooked:
        with pytest.raises(NotifyError) as caught:
            await notifier(hooked.url.replace("http:", "https:")).send(NOTICE)
    assert hooked.bodies == []
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", None, "ftp://h/x", "not a url SECRET", "http://[", "http://h:x/"]
)
async def test_a_wrong_address_is_told_without_it(url: str | None) -> None:
    with pytest.raises(NotifyError, match=r"^the secret is no http or https URL$"):
        await notifier(url).send(NOTICE)


@pytest.mark.parametrize(
    "spec",
    [
        NotifySpec(kind="webhook"),
        NotifySpec(kind="webhook", url="env:X", command=("true",)),
    ],
)
def test_a_spec_that_cannot_work_is_refused(spec: NotifySpec) -> None:
    with pytest.raises(ConfigError, match="url"):
        WebhookNotifier(spec, WebhookOptions(), None)
