"""Prometheus and exporters: the contract for both ways, then series, staleness and labels."""

from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web
from pydantic import ValidationError

from farm.drivers.meters.prometheus import PrometheusMeter, PrometheusOptions
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_http import MeterHttpServer, json_of
from tests.servers.meter_rig import rig_of, spec_of

TOKEN = "not-a-secret-token"
QUERY = 'outlet_power_watts{outlet="7"}'


class PrometheusServer(MeterHttpServer):
    """Its query API and, under /metrics, an exporter's page."""

    def __init__(self) -> None:
        super().__init__()
        self.series = 1
        self.asked = ""

    async def reply(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refusal()
        if request.path == "/metrics":
            return web.Response(text=self._page())
        self.asked = request.query["query"]
        metric = {"__name__": "outlet_power_watts", "outlet": "7"}
        is_range = self.asked.endswith("[30s]")
        samples: dict[str, object] = {"value": [1_764_470_400.0, self._shown()]}
        if is_range:
            old = [[1_764_470_385.0, "3.5"], [1_764_470_400.0, self._shown()]]
            samples = {"values": old}
        found = [{"metric": metric, **samples} for _ in range(self.series)]
        kind = "matrix" if is_range else "vector"
        return json_of({"status": "success", "data": {"resultType": kind, "result": found}})

    def _shown(self) -> str:
        return "NaN" if self.fault == "nan" else str(self.shown_w)

    def _page(self) -> str:
        return (
            "# HELP power_mw the power\n# TYPE power_mw gauge\n"
            'power_mw{plug="7",where="left } \\"top\\""} 99\n'
            f'power_mw{{plug="8",where="right"}} {self.shown_w * 1000} 1764470400000\n'
            "up 1\n"
        )


def scrape(**labels: str) -> PrometheusOptions:
    return PrometheusOptions(mode="scrape", metric="power_mw", labels=labels, unit="mW")


class TestQuery(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        options = PrometheusOptions(query=QUERY)
        return rig_of(PrometheusServer(), lambda spec: PrometheusMeter(spec, options, TOKEN))


class TestScrape(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        options = scrape(plug="8")
        return rig_of(PrometheusServer(), lambda spec: PrometheusMeter(spec, options, TOKEN))


async def test_it_asks_for_what_is_new_only() -> None:
    async with PrometheusServer() as server:
        meter = PrometheusMeter(spec_of(server.port), PrometheusOptions(query=QUERY), TOKEN)
        facts = await meter.open()
        reading = await meter.read()
        server.series = 0  # what the server answers when the window holds no sample
        stale = await meter.read()
        await meter.close()
    assert server.asked == f"{QUERY}[30s]"
    assert QUERY in facts.identity
    assert isinstance(reading, MeterReading)
    assert reading.power_w == 10.0
    assert isinstance(stale, MeterMiss)
    assert stale.kind is MissKind.NO_DATA


async def test_an_expression_is_asked_as_it_is() -> None:
    async with PrometheusServer() as server:
        options = PrometheusOptions(query="sum(x) / 1000", is_expression=True, unit="kW")
        spec = spec_of(server.port).model_copy(update={"max_w": 1e6})
        meter = PrometheusMeter(spec, options, TOKEN)
        await meter.open()
        reading = await meter.read()
        await meter.close()
    assert server.asked == "sum(x) / 1000"
    assert isinstance(reading, MeterReading)
    assert reading.power_w == 10_000.0


async def test_several_series_must_be_told_apart() -> None:
    async with PrometheusServer() as server:
        server.series = 2
        queried = PrometheusMeter(spec_of(server.port), PrometheusOptions(query=QUERY), TOKEN)
        with pytest.raises(MeterError, match="2 series, and it must be one"):
            await queried.open()
        scraped = PrometheusMeter(spec_of(server.port), scrape(), TOKEN)
        with pytest.raises(MeterError, match="2 series, and it must be one"):
            await scraped.open()


@pytest.mark.parametrize(
    ("options", "says"),
    [({}, '"query"'), ({"mode": "scrape"}, '"metric"'), ({"query": "x", "window_s": 0}, "window")],
)
def test_options_without_a_question_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        PrometheusOptions.model_validate(options)
