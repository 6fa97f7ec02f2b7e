"""A gauge in Prometheus, or on an exporter's own page.

In the inventory::

    meters:
      pdu-7:
        kind: prometheus
        host: 192.0.2.30
        port: 9090
        options: {query: 'outlet_power_watts{pdu="a",outlet="7"}', window_s: 30}
        update_s: 15
      plug-8:
        kind: prometheus
        host: 192.0.2.31
        port: 9100
        options: {mode: scrape, metric: power_mw, labels: {plug: "8"}, unit: mW}

``query`` asks the server for the selector's samples of the last ``window_s`` and takes the
newest: what the server keeps alive for five minutes after its exporter died is no reading. An
expression that is no plain selector needs ``is_expression: true`` and is then as fresh as the
server says. ``scrape`` reads the exporter's text. A secret is sent as a bearer token.
Manuals: prometheus.io/docs, "HTTP API" and "Exposition formats".
"""

import re
import time
from collections.abc import Callable
from typing import Literal, Self

from pydantic import Field, model_validator

from farm.drivers.meter_dialogue import WATTS, Measured, NoReading, PolledMeter, brief, required
from farm.drivers.meter_http import HttpSource, at_path
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

_SAMPLE = re.compile(r'([A-Za-z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)')
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


class PrometheusOptions(Record):
    """What is read; `path` is the exporter's page in ``scrape`` mode."""

    mode: Literal["query", "scrape"] = "query"
    query: str = ""
    is_expression: bool = False
    window_s: int = Field(default=30, ge=1, le=3600)
    metric: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    path: str = Field(default="/metrics", pattern="^/")
    unit: Literal["mW", "W", "kW"] = "W"
    tls: bool = False

    @model_validator(mode="after")
    def _has_its_question(self) -> Self:
        wanted = "query" if self.mode == "query" else "metric"
        if not getattr(self, wanted):
            raise ValueError(f'mode "{self.mode}" needs "{wanted}"')
        return self


class PrometheusMeter(PolledMeter):
    """One time series."""

    Options = PrometheusOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: PrometheusOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._options = options
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self._http = HttpSource(spec, port=9090, is_tls=options.tls, headers=headers)

    async def _identify(self) -> MeterFacts:
        series = self._options.query or self._options.metric
        labels = ",".join(f'{k}="{v}"' for k, v in sorted(self._options.labels.items()))
        name = f"{series}{{{labels}}}" if labels else series
        return MeterFacts("Prometheus series", f"{self._http.base}/{name}")

    async def _measure(self) -> Measured:
        asks = self._queried if self._options.mode == "query" else self._scraped
        return Measured(required(await asks(), "power", WATTS[self._options.unit]))

    async def _queried(self) -> object:
        query = self._options.query
        if not self._options.is_expression:
            query = f"{query}[{self._options.window_s}s]"
        told = await self._http.json("/api/v1/query", {"query": query})
        results = at_path(told, "data.result")
        if at_path(told, "status") != "success" or not isinstance(results, list):
            raise NoReading(MissKind.PROTOCOL, f"no result: {brief(told)}")
        is_scalar = at_path(told, "data.resultType") == "scalar"
        found: list[object] = [{"value": results}] if is_scalar else results
        series = _single(found, self._options.query)
        values = at_path(series, "values")
        newest = values[-1] if isinstance(values, list) and values else at_path(series, "value")
        if not isinstance(newest, list) or len(newest) != 2:  # noqa: PLR2004 - time and value
            raise NoReading(MissKind.PROTOCOL, f"no sample: {brief(series)}")
        return newest[1]

    async def _scraped(self) -> object:
        text = await self._http.text(self._options.path)
        found: list[object] = []
        readable = 0
        for line in text.splitlines():
            match = None if line.startswith("#") else _SAMPLE.match(line)
            if match is None:
                continue
            readable += 1
            labels = dict(_LABEL.findall(match[2] or ""))
            if match[1] == self._options.metric and self._options.labels.items() <= labels.items():
                found.append(match[3])
        if not readable:
            raise NoReading(MissKind.PROTOCOL, f"no metrics: {brief(text[:100])}")
        return _single(found, self._options.metric)

    async def _disconnect(self) -> None:
        await self._http.close()


def _single(found: list[object], what: str) -> object:
    if len(found) != 1:
        count = (
            f"{len(found)} series, and it must be one" if found else "no series, or a stale one"
        )
        raise NoReading(MissKind.NO_DATA, f"{what} gives {count}")
    return found[0]
