"""Setting, proving and restoring power modes of a Jetson whose tools play along, or do not."""

import pytest

from farm.drivers.power_modes.nvpmodel import STORE, NvpmodelPowerController
from farm.errors import (
    CommandTimeoutError,
    PowerModeError,
    RebootNeededError,
    UnsupportedPowerModeError,
)
from farm.interfaces.power_controller import RebootingController
from farm.model.power_mode import ClockPolicy, PowerModeState
from farm.model.profile import BoardProfile
from tests.drivers.power_modes.fake_jetson import RECORDINGS, TX2, FakeJetson

PROFILE = BoardProfile(name="jetson-tx2", summary="TX2", power_controller="nvpmodel", cores=6)


def controller(board: FakeJetson) -> NvpmodelPowerController:
    return NvpmodelPowerController(board, PROFILE)


async def test_the_table_is_the_boards_own() -> None:
    table = await controller(FakeJetson()).modes()
    assert [mode.name for mode in table.modes][:2] == ["MAXN", "MAXQ"]
    assert table.default == "MAXP_CORE_ALL"
    assert table.modes[0].source == "/etc/nvpmodel.conf"


async def test_an_unreadable_conf_is_asked_of_the_tool() -> None:
    readable = await controller(FakeJetson()).modes()
    table = await controller(FakeJetson(conf_readable=False)).modes()
    assert table.digest == readable.digest
    assert table.modes[1].gpu_mhz == 850


async def test_no_table_at_all_is_an_error_with_the_profile() -> None:
    with pytest.raises(PowerModeError, match="jetson-tx2"):
        await controller(FakeJetson(conf="")).modes()


async def test_a_mode_is_set_and_read_back() -> None:
    board = FakeJetson()
    applied = await controller(board).apply("maxq", "default")
    assert (applied.asked, applied.name, applied.id) == ("maxq", "MAXQ", 1)
    assert applied.has_changed
    assert applied.read_back == PowerModeState(
        name="MAXQ", id=1, detail={"online": "0,3,4,5", "clocks": "free"}
    )
    assert board.sets == ["nvpmodel -m 1"]


async def test_the_mode_it_is_in_is_proven_and_not_set_again() -> None:
    board = FakeJetson(mode_id=1)
    applied = await controller(board).apply("MAXQ", "default")
    assert not applied.has_changed
    assert board.sets == []


async def test_in_the_mode_by_name_but_not_in_force_it_is_set_again() -> None:
    board = FakeJetson(mode_id=1, stuck_gpu_cap=1300500000)
    with pytest.raises(PowerModeError, match="GPU may reach 1300500000, not 850000000"):
        await controller(board).apply("MAXQ", "default")
    assert board.sets == ["nvpmodel -m 1"]


@pytest.mark.parametrize(("cap", "is_held"), [(918000000, True), (999000000, False)])
async def test_a_coarse_table_explains_a_cap(cap: int, is_held: bool) -> None:
    """The conf wants 850 MHz; 918 is the next that the kernel offers, 999 is not."""
    path = "/sys/devices/17000000.gp10b/devfreq/17000000.gp10b/available_frequencies"
    table = "114750000 726750000 918000000 999000000\n"
    board = FakeJetson(mode_id=1, stuck_gpu_cap=cap, files={path: table})
    if is_held:
        assert not (await controller(board).apply("MAXQ", "default")).has_changed
    else:
        with pytest.raises(PowerModeError, match="GPU may reach 999000000"):
            await controller(board).apply("MAXQ", "default")


async def test_the_tool_says_done_and_the_mode_is_another() -> None:
    refused = "NVPM ERROR: Error writing 1 to /sys/x: 19\nNVPM ERROR: failed to set!\n"
    with pytest.raises(PowerModeError, match=r"read back MAXN \(0\).*Error writing 1") as caught:
        await controller(FakeJetson(refuses_with=refused)).apply("MAXQ", "default")
    assert not isinstance(caught.value, RebootNeededError)
    assert "cannot leave such a mode" in caught.value.remedy


async def test_a_core_too_many_is_seen() -> None:
    with pytest.raises(PowerModeError, match="5 cores are online, not 4"):
        await controller(FakeJetson(stuck_core=True)).apply("MAXQ", "default")


async def test_a_stale_mask_is_seen() -> None:
    with pytest.raises(RebootNeededError, match="TPC_PG_MASK is 0, not 240") as caught:
        await controller(FakeJetson(has_stale_mask=True)).apply("MAXQ", "default")
    assert caught.value.mode == "MAXQ"


async def test_the_mask_of_the_conf_counts_not_what_the_tool_prints_as_wanted() -> None:
    """The tool tells what its stored mode wants; the conf may have been changed since."""
    conf = TX2.replace("NAME=MAXQ >", "NAME=MAXQ >\nTPC_POWER_GATING TPC_PG_MASK 252", 1)
    board = FakeJetson(conf=conf, mode_id=1, has_stale_mask=True)
    with pytest.raises(RebootNeededError, match="TPC_PG_MASK is 0, not 252"):
        await controller(board).apply("MAXQ", "default")


async def test_a_mask_in_force_is_no_reason_to_set_again() -> None:
    conf = TX2.replace("NAME=MAXQ >", "NAME=MAXQ >\nTPC_POWER_GATING TPC_PG_MASK 252", 1)
    board = FakeJetson(conf=conf, mode_id=1)
    assert not (await controller(board).apply("MAXQ", "default")).has_changed


async def test_a_question_for_a_reboot_is_reported_not_answered() -> None:
    board = FakeJetson(asks_reboot=True)
    with pytest.raises(RebootNeededError, match="asks for a reboot") as caught:
        await controller(board).apply("maxq", "default")
    assert caught.value.mode == "MAXQ"
    assert "sudo nvpmodel -m 1" in caught.value.remedy
    assert (board.mode_id, board.reboots) == (0, 0)


async def test_a_reboot_that_is_wanted_is_answered_and_proven_after() -> None:
    board = FakeJetson(asks_reboot=True)
    control = controller(board)
    assert isinstance(control, RebootingController)
    assert await control.request_reboot_into("maxq") is True
    assert (board.reboots, board.mode_id) == (1, 1)
    assert not (await control.apply("maxq", "default")).has_changed


async def test_a_stuck_mask_that_the_tool_does_not_ask_about_is_cured_by_a_plain_reboot() -> None:
    board = FakeJetson(has_stale_mask=True)
    assert await controller(board).request_reboot_into("MAXQ") is True
    assert board.log[-1] == "reboot"
    assert (await controller(board).apply("MAXQ", "default")).name == "MAXQ"


async def test_a_mask_that_is_busy_is_a_matter_of_a_reboot() -> None:
    busy = (RECORDINGS / "jetson-agx-orin/nvpmodel/set_mask_busy.txt").read_text()
    with pytest.raises(RebootNeededError, match=r"GPU was used since the boot .*tpc_pg_mask"):
        await controller(FakeJetson(refuses_with=busy)).apply("MAXQ", "default")


async def test_a_mode_that_changes_live_after_all_needs_no_reboot() -> None:
    board = FakeJetson()
    assert await controller(board).request_reboot_into("MAXQ") is False
    assert (board.reboots, board.mode_id) == (0, 1)


async def test_an_answer_that_is_not_taken_is_an_error() -> None:
    board = FakeJetson(asks_reboot=True, ignores_answer=True)
    with pytest.raises(PowerModeError, match="did not take our YES"):
        await controller(board).request_reboot_into("MAXQ")


async def test_a_board_that_goes_down_before_it_answers_is_told_as_such() -> None:
    with pytest.raises(CommandTimeoutError):
        await controller(FakeJetson(hangs_on_set=True)).request_reboot_into("MAXQ")


async def test_a_reboot_without_sudo_names_the_remedy() -> None:
    with pytest.raises(PowerModeError, match="password is required") as caught:
        await controller(FakeJetson(has_root=False)).request_reboot_into("MAXQ")
    assert "farm boards sudoers" in caught.value.remedy


async def test_a_status_file_that_cannot_be_written_is_named() -> None:
    refused = "NVPM ERROR: Error opening /var/lib/nvpmodel/status: 30\n"
    with pytest.raises(PowerModeError, match=r"/var/lib/nvpmodel/status .*error 30") as caught:
        await controller(FakeJetson(refuses_with=refused)).apply("MAXQ", "default")
    assert "read-only" in caught.value.remedy


async def test_no_conf_and_no_tool_are_told_apart_from_an_empty_conf() -> None:
    with pytest.raises(PowerModeError, match="cannot be read, and there is no nvpmodel"):
        await controller(FakeJetson(conf_readable=False, has_tools=False)).modes()
    with pytest.raises(PowerModeError, match=r"nvpmodel.conf lists no mode, and `nvpmodel -p`"):
        await controller(FakeJetson(conf="")).modes()


async def test_a_set_that_never_ends_is_reported() -> None:
    with pytest.raises(PowerModeError, match="asking something"):
        await controller(FakeJetson(hangs_on_set=True)).apply("MAXQ", "default")


async def test_unknown_modes_list_what_exists() -> None:
    with pytest.raises(UnsupportedPowerModeError, match="MAXN, MAXQ, MAXP_CORE_ALL"):
        await controller(FakeJetson()).apply("25W", "default")


async def test_without_sudo_the_current_mode_still_works() -> None:
    applied = await controller(FakeJetson(has_root=False)).apply("current", "default")
    assert applied.name == "MAXN"
    assert applied.read_back.detail["clocks"] == "unknown"


@pytest.mark.parametrize(("asked", "clocks"), [("MAXQ", "default"), ("current", "locked")])
async def test_without_sudo_a_change_names_the_remedy(asked: str, clocks: ClockPolicy) -> None:
    with pytest.raises(PowerModeError, match="password is required") as caught:
        await controller(FakeJetson(has_root=False)).apply(asked, clocks)
    assert "farm boards sudoers" in caught.value.remedy


async def test_clocks_are_stored_then_locked_after_the_mode() -> None:
    board = FakeJetson()
    applied = await controller(board).apply("MAXQ", "locked")
    assert applied.read_back.is_locked
    order = ["nvpmodel -m 1", f"jetson_clocks --store {STORE}", "jetson_clocks"]
    assert [line for line in board.log if line in order] == order
    assert board.files[STORE] == "free"


async def test_our_lock_is_opened_before_the_mode_changes() -> None:
    board = FakeJetson()
    control = controller(board)
    await control.apply("MAXQ", "locked")
    board.log.clear()
    applied = await control.apply("MAXN", "default")
    assert not applied.read_back.is_locked
    restore = f"jetson_clocks --restore {STORE}"
    assert board.log.index(restore) < board.log.index("nvpmodel -m 0")


async def test_a_store_file_that_brings_back_cores_is_corrected() -> None:
    """It was made in another mode, and its lines on cores undo the present one."""
    board = FakeJetson(mode_id=1, is_locked=True, restores_cores=True, files={STORE: "free"})
    applied = await controller(board).apply("MAXQ", "default")
    assert applied.read_back.detail["online"] == "0,3,4,5"
    assert board.sets == ["nvpmodel -m 1"]


async def test_a_lock_is_kept_while_the_mode_stays() -> None:
    board = FakeJetson()
    control = controller(board)
    await control.apply("MAXQ", "locked")
    board.log.clear()
    applied = await control.apply("MAXQ", "locked")
    assert not applied.has_changed
    assert "jetson_clocks" not in board.log
    assert board.files[STORE] == "free"


async def test_a_lock_that_does_not_hold_is_an_error() -> None:
    with pytest.raises(PowerModeError, match="lock clocks"):
        await controller(FakeJetson(ignores_lock=True)).apply("current", "locked")


async def test_somebody_elses_lock_without_a_file_is_an_error() -> None:
    with pytest.raises(PowerModeError, match="stay locked"):
        await controller(FakeJetson(is_locked=True)).apply("current", "default")


async def test_somebody_elses_lock_is_opened_and_put_back() -> None:
    board = FakeJetson(mode_id=3, is_locked=True, has_own_store=True)
    control = controller(board)
    original = await control.current()
    assert original.is_locked
    await control.apply("MAXQ", "default")
    assert not board.is_locked
    await control.restore(original)
    assert (board.mode_id, board.is_locked) == (3, True)


async def test_restore_after_our_lock_leaves_it_open() -> None:
    board = FakeJetson(mode_id=3)
    control = controller(board)
    original = await control.current()
    await control.apply("maxn", "locked")
    await control.restore(original)
    assert (board.mode_id, board.is_locked) == (3, False)


async def test_restore_by_another_controller_after_the_host_died() -> None:
    board = FakeJetson(mode_id=3)
    original = await controller(board).current()
    await controller(board).apply("maxq", "locked")
    await controller(board).restore(original)
    assert (board.mode_id, board.is_locked) == (3, False)


async def test_restore_of_a_mode_that_is_gone() -> None:
    with pytest.raises(UnsupportedPowerModeError, match="no longer has BirdEdge"):
        await controller(FakeJetson()).restore(PowerModeState(name="BirdEdge", id=9))


async def test_a_board_whose_mode_was_never_set_can_be_set() -> None:
    board = FakeJetson(mode_id=None)
    control = controller(board)
    with pytest.raises(PowerModeError, match="names no mode"):
        await control.current()
    with pytest.raises(UnsupportedPowerModeError):
        await control.apply("current", "default")
    applied = await control.apply("maxn", "default")
    assert applied.name == "MAXN"


async def test_the_board_can_put_itself_back_by_the_steps() -> None:
    jetson = FakeJetson()
    control = controller(jetson)
    found = await control.current()
    steps = await control.restore_steps(found)
    await control.apply("MAXQ", "locked")
    for step in steps:
        result = await jetson.run(step.argv, stdin=step.stdin.encode())
        assert step.expects in result.text
    assert await control.current() == found


async def test_clocks_that_were_locked_are_locked_again_after_the_mode() -> None:
    jetson = FakeJetson(is_locked=True)
    control = controller(jetson)
    steps = await control.restore_steps(await control.current())
    assert [step.argv[0] for step in steps][-2:] == ["nvpmodel", "jetson_clocks"]
    assert steps[-1].argv == ("jetson_clocks",)
