"""The profiles that come along: sources, modes, masks, peaks, rails, and plans made with them."""

from collections.abc import Iterator

import pytest

from farm.config.builtin import builtin_folder
from farm.config.profiles import load_profiles
from farm.model.plan import Cell, Trial
from farm.model.power_mode import PowerMode
from farm.model.profile import BoardProfile, Gpu, Peak
from farm.planning.order import count_changes, mask_of, order_modes

PROFILES = load_profiles([builtin_folder("device_profiles")])
NAMES = sorted(PROFILES)
JETSONS = [name for name in NAMES if name.startswith("jetson-")]
WITH_GPU_PEAKS = [name for name in JETSONS if PROFILES[name].peaks]

UNRESOLVED = {("jetson-agx-orin-64gb", "MODE_15W", "INT8")}
"""Printed figures that do not follow from the mask of the conf; the profile says so."""

SNAP = 0.05
"""How far a clock may be from its cap: the kernel's table has 614.4 MHz for Nano's 640."""


def clock_mhz(profile: BoardProfile, mode: PowerMode) -> float:
    top = profile.gpu.top_mhz if profile.gpu else None
    found = mode.gpu_mhz or top
    assert found is not None, (profile.name, mode.name)
    return found


def cores_on(profile: BoardProfile, mode: PowerMode) -> float:
    gpu = profile.gpu
    assert gpu is not None
    assert gpu.cores is not None
    if gpu.tpcs is None:
        return gpu.cores
    on = profile.tpcs(mode)
    assert on is not None
    return gpu.cores * on / gpu.tpcs


def gpu_peaks(name: str) -> Iterator[tuple[Peak, PowerMode]]:
    profile = PROFILES[name]
    for peak in profile.peaks:
        mode = profile.mode(peak.power_mode or "")
        assert mode is not None, (name, peak)
        if peak.engine == "main" and (name, mode.name, peak.precision) not in UNRESOLVED:
            yield peak, mode


def test_every_board_of_the_list_has_a_profile() -> None:
    assert NAMES == [
        "generic-linux",
        "jetson-agx-orin-32gb",
        "jetson-agx-orin-64gb",
        "jetson-agx-xavier",
        "jetson-nano",
        "jetson-orin-nano-4gb",
        "jetson-orin-nano-8gb",
        "jetson-orin-nano-super",
        "jetson-orin-nx-16gb",
        "jetson-orin-nx-8gb",
        "jetson-orin-nx-super",
        "jetson-thor-t4000",
        "jetson-thor-t5000",
        "jetson-tx1",
        "jetson-tx2",
        "jetson-tx2-nx",
        "jetson-xavier-nx",
        "kria-kv260",
        "nvidia-gpu",
        "raspberry-pi-4",
        "raspberry-pi-5",
        "zcu104",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_source(name: str) -> None:
    profile = PROFILES[name]
    figures = [profile.memory_bandwidth_gbs, profile.price_usd, profile.max_temperature_c]
    sources = [figure.source for figure in figures if figure is not None]
    sources += [peak.source for peak in profile.peaks]
    sources += [mode.source for mode in profile.power_modes]
    sources += [
        part.source for part in (profile.gpu, profile.rails, profile.thermal_zones) if part
    ]
    sources += [total.source for total in profile.rails.totals] if profile.rails else []
    sources.append(profile.sources.cores)
    if profile.memory_gb is not None:
        sources.append(profile.sources.memory_gb)
    assert all(len(source) > 5 for source in sources)


@pytest.mark.parametrize("name", NAMES)
def test_a_budget_says_where_it_comes_from(name: str) -> None:
    for mode in PROFILES[name].power_modes:
        promised = mode.budget_w is not None and name not in ("jetson-nano", "jetson-tx2")
        assert ("budget" in mode.source) == (
            promised or (name == "jetson-tx2" and mode.name != "MAXN")
        )
        if promised:
            assert f"{mode.budget_w:g}W" in mode.name


@pytest.mark.parametrize("name", JETSONS)
def test_a_jetson_is_told_by_a_part_number_of_its_own(name: str) -> None:
    profile = PROFILES[name]
    assert profile.power_controller == "nvpmodel"
    parts = set(profile.identify.compatible)
    assert parts
    for other in JETSONS:
        assert other == name or not parts & set(PROFILES[other].identify.compatible)


@pytest.mark.parametrize("name", [name for name in NAMES if PROFILES[name].power_modes])
def test_modes(name: str) -> None:
    profile = PROFILES[name]
    ids = [mode.id for mode in profile.power_modes if mode.id is not None]
    assert ids == list(range(len(ids)))
    assert profile.default_power_mode is not None
    assert profile.mode(profile.default_power_mode.lower()) is not None
    simulated = profile.simulation.idle_w if profile.simulation else {"": 1.0}
    assert set(simulated) in ({""}, {mode.name for mode in profile.power_modes})
    assert all(watts > 0 for watts in simulated.values())


@pytest.mark.parametrize("name", WITH_GPU_PEAKS)
def test_fp32_is_two_operations_a_core_and_clock(name: str) -> None:
    profile = PROFILES[name]
    found = [(peak, mode) for peak, mode in gpu_peaks(name) if peak.precision == "FP32"]
    assert found
    for peak, mode in found:
        expected = 2 * cores_on(profile, mode) * clock_mhz(profile, mode) / 1e6
        assert peak.tops == pytest.approx(expected, rel=SNAP), mode.name


@pytest.mark.parametrize("name", WITH_GPU_PEAKS)
def test_a_peak_follows_clock_and_tpcs(name: str) -> None:
    profile = PROFILES[name]
    series: dict[tuple[str, bool], list[float]] = {}
    for peak, mode in gpu_peaks(name):
        rate = peak.tops / (cores_on(profile, mode) * clock_mhz(profile, mode))
        series.setdefault((peak.precision, peak.sparse), []).append(rate)
    for key, rates in series.items():
        assert rates == pytest.approx([rates[0]] * len(rates), rel=SNAP), key


@pytest.mark.parametrize("name", [name for name in JETSONS if "orin" in name])
def test_dense_int8_is_half_of_sparse_and_alike_in_the_family(name: str) -> None:
    profile = PROFILES[name]
    for peak, mode in gpu_peaks(name):
        if peak.precision == "INT8" and not peak.sparse:
            sparse = profile.peak("int8", mode.name, sparse=True)
            assert sparse is not None
            assert peak.tops == pytest.approx(sparse.tops / 2, rel=0.03)
            rate = peak.tops / (cores_on(profile, mode) * clock_mhz(profile, mode))
            assert rate == pytest.approx(85.5 / (2048 * 1300.5), rel=0.04)


def test_peaks_of_agx_orin_by_engine() -> None:
    profile = PROFILES["jetson-agx-orin-64gb"]
    for mode in ("MAXN", "MODE_50W", "MODE_30W", "MODE_15W"):
        parts = [profile.peak("INT8", mode, engine=one, sparse=True) for one in ("main", "dla")]
        whole = profile.peak("INT8", mode, engine="all", sparse=True)
        assert whole is not None
        assert sum(part.tops for part in parts if part) == pytest.approx(whole.tops, abs=1)
    assert profile.peak("INT8", "MAXN", engine="dla") is None
    assert profile.peak("INT4", "MAXN") is None
    dpu = PROFILES["zcu104"].peak("int8", "default")
    assert dpu is not None
    assert dpu.tops == 4.604


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("jetson-agx-xavier", "MODE_10W"),
        ("jetson-agx-orin-32gb", "MAXN"),
        ("jetson-orin-nx-8gb", "MAXN"),
        ("jetson-orin-nano-super", "7W"),
        ("jetson-thor-t5000", "90W"),
    ],
)
def test_no_peak_where_clock_or_mask_is_unknown(name: str, mode: str) -> None:
    assert PROFILES[name].mode(mode) is not None
    assert PROFILES[name].peak("FP32", mode) is None


@pytest.mark.parametrize(
    ("mask", "left"), [(0, 8), (128, 7), (240, 4), (248, 3), (252, 2), (255, 0)]
)
def test_a_mask_leaves_tpcs(mask: int, left: int) -> None:
    assert Gpu(mask_bits=8, source="Orin").tpcs_on(mask) == left


def test_a_mask_of_unknown_width() -> None:
    gpu = Gpu(tpcs=10, source="a test")
    assert gpu.tpcs_on(0) == 10
    assert gpu.tpcs_on(3) is None


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("jetson-agx-orin-64gb", {"MAXN": 8, "MODE_15W": 3, "MODE_30W": 4, "MODE_50W": 8}),
        ("jetson-agx-orin-32gb", {"MAXN": 7, "MODE_15W": 3, "MODE_30W": 4, "MODE_40W": 7}),
        ("jetson-orin-nx-16gb", {"MAXN": 4, "10W": 2, "15W": 2, "25W": 4}),
        ("jetson-orin-nano-8gb", {"15W": 4, "7W": 2}),
        ("jetson-orin-nano-4gb", {"10W": 2, "7W_AI": 2, "7W_CPU": 2}),
        ("jetson-tx2", dict.fromkeys(("MAXN", "MAXQ", "MAXP_CORE_ALL", "MAXP_CORE_ARM"))),
    ],
)
def test_tpcs_of_the_modes(name: str, left: dict[str, int | None]) -> None:
    profile = PROFILES[name]
    assert {mode.name: profile.tpcs(mode) for mode in profile.power_modes} == left


@pytest.mark.parametrize(
    ("name", "before", "after", "needed"),
    [
        ("jetson-agx-orin-64gb", "maxn", "mode_50w", False),
        ("jetson-agx-orin-64gb", "MAXN", "MODE_30W", True),
        ("jetson-agx-xavier", "MODE_10W", "MAXN", True),
        ("jetson-agx-xavier", "MODE_15W", "MODE_30W_ALL", False),
        ("jetson-xavier-nx", "MODE_10W_2CORE", "MODE_20W_6CORE", False),
        ("jetson-tx2", "MAXN", "MAXQ", False),
        ("jetson-orin-nano-super", "25W", "7W", True),
        ("jetson-thor-t5000", "MAXN", "120W", False),
        ("jetson-thor-t5000", "120W", "90W", True),
        ("jetson-thor-t5000", "70W", "90W", True),
        ("jetson-thor-t5000", "70W", "70W", False),
        ("jetson-thor-t5000", "MAXN", "130W", None),
    ],
)
def test_reboots(name: str, before: str, after: str, needed: bool | None) -> None:
    assert PROFILES[name].needs_reboot(before, after) is needed


def test_a_mask_that_one_mode_lacks_is_unknown() -> None:
    modes = (PowerMode(name="A", tpc_mask=240), PowerMode(name="B"))
    profile = BoardProfile(name="p", summary="", cores=1, power_modes=modes)
    assert profile.needs_reboot("A", "B") is None


def test_a_plan_for_agx_orin_reboots_as_little_as_it_can() -> None:
    profile = PROFILES["jetson-agx-orin-64gb"]
    assert mask_of("current", profile) == 240
    assert mask_of("15W", profile) == 248
    cells = {mode: _cell(profile, mode) for mode in ("maxn", "15w", "30w", "50w")}
    order = order_modes(cells.values(), profile)
    assert order == ["30w", "maxn", "50w", "15w"]
    trials = [Trial(f"{mode}-r01", cells[mode], 1, "orin-01") for mode in order]
    assert count_changes(trials, profile) == (3, 3)  # to MAXN, to 15W, back to 30W


def _cell(profile: BoardProfile, mode: str) -> Cell:
    return Cell(
        cell_id=mode,
        target="orin-01",
        is_any=False,
        profile=profile.name,
        payload="w",
        payload_digest="",
        level=3,
        power_mode=mode,
        clocks="default",
        parameters={},
    )


@pytest.mark.parametrize(
    ("name", "present", "total"),
    [
        ("jetson-tx2", ["VDD_IN", "VDD_SYS_GPU"], ["VDD_IN"]),
        ("jetson-nano", ["POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"], ["POM_5V_IN"]),
        ("jetson-agx-orin-64gb", ["VIN_SYS_5V0"], None),
        (
            "jetson-thor-t5000",
            ["VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0"],
            ["VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0"],
        ),
        ("jetson-thor-t5000", ["VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0", "VIN"], ["VIN"]),
    ],
)
def test_the_total_of_the_rails(name: str, present: list[str], total: list[str] | None) -> None:
    rails = PROFILES[name].rails
    assert rails is not None
    found = rails.total_of(present)
    assert (list(found.rails) if found else None) == total
    assert found is None or found.is_sum == (len(found.rails) > 1)


def test_older_names_of_rails() -> None:
    rails = PROFILES["jetson-tx2"].rails
    assert rails is not None
    assert rails.aliases["VDD_DDR"] == "VDD_SYS_DDR"
    renamed = rails.model_copy(update={"aliases": {"IN": "VDD_IN"}})
    assert renamed.total_of(["IN"]) == rails.totals[0]


@pytest.mark.parametrize("name", NAMES)
def test_sensors_that_read_nothing_are_sensors(name: str) -> None:
    zones = PROFILES[name].thermal_zones
    if zones is not None:
        assert set(zones.not_readings) <= set(zones.names)
        assert len(set(zones.names)) == len(zones.names)


def test_the_document_lists_what_the_profiles_hold() -> None:
    text = (builtin_folder("device_profiles").parent / "docs/device-profiles.md").read_text(
        "utf-8"
    )
    rows = {
        cells[0]: cells[1:]
        for line in text.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 8
    }
    assert set(NAMES) == set(rows) - {"profile", "---"}
    for name in NAMES:
        profile = PROFILES[name]
        part, modes, default, _, bandwidth, price, _ = rows[name]
        if profile.identify.compatible:
            assert part == ", ".join(profile.identify.compatible)
        if profile.power_modes:
            assert (modes, default) == (str(len(profile.power_modes)), profile.default_power_mode)
        figures = (profile.memory_bandwidth_gbs, profile.price_usd)
        assert [bandwidth, price.removeprefix("$")] == [
            f"{figure.value:g}" if figure else "" for figure in figures
        ]
