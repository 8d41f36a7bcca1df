"""What SMs do over time: blocks in waves, and warps of which one computes while others wait."""

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, MUTED, Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, WAIT, Lanes
from anatomy.judge import rows
from anatomy.record.showing import current

PANELS = (1, 2, 4)  # warps
# Units of time: a warp computes, then waits. Drawn short; a load takes hundreds of cycles.
COMPUTES, WAITS, TURNS = 1.0, 3.0, 3

SMS, BLOCKS = 4, 5  # of the drawing of waves
# What its times are of: a launch that fills all SMs of the machine, and one of a block more.
ALONE, EDGES = "one block an SM", ("full", "one more")


def block_waves() -> str:
    """Four SMs with a place for one block each, and five blocks, with how long one wave and two
    take on the machine shown.

    block_waves()
    """
    found = current().find("occupancy.staircase")
    label = (
        "Four SMs over time. Blocks 1 to 4 run at once, one on each. Block 5 waits until one of "
        "them is done, and runs alone while three SMs are idle."
    )

    def draw() -> str:
        table = rows.select(found.recording.rows if found.recording else [], op=ALONE)
        ends = [rows.printed(row, "median_s") for row in table if row.get("edge") in EDGES]
        return canvas.both(lambda sheet: _waves(sheet, ends), label)

    return framing.exhibit([found], None, draw)


def _waves(sheet: Canvas, ends: list[str]) -> None:
    lanes = Lanes(sheet, 2.0, left=52)
    for wave in (0, 1):
        sheet.words(lanes.at(wave) + 2, 12, f"wave {wave + 1}", bold=True)
    for sm in range(SMS):
        lanes.lane(20 + sm * LANE, f"SM {sm + 1}")
        for wave in (0, 1):
            block = wave * SMS + sm + 1
            there = block <= BLOCKS
            said = f"block {block}" if there else "idle"
            y, fill = 20 + sm * LANE, KERNEL if there else WAIT
            lanes.box(y, wave, wave + 1, fill, said, frame=not there)
    for wave, end in enumerate(ends, 1):
        said = f"measured: {end}" if wave == 1 else end
        sheet.words(lanes.at(wave), 20 + SMS * LANE + 12, said, bold=True, anchor="end")


def hidden_waits() -> str:
    """One SM with a warp that waits, with two, and with as many as it takes never to be idle.

    hidden_waits()
    """
    label = (
        "Lanes of warps over time. One warp computes, then waits for its load, and the SM is idle "
        "for three quarters of the time; with two warps for half of it; with four some warp always "
        "has work."
    )
    return f'<figure class="shown">{canvas.both(_drawn, label)}</figure>'


def _drawn(sheet: Canvas) -> None:
    turn = COMPUTES + WAITS
    for warps in PANELS:
        y = sheet.height + (22 if sheet.height else 12)
        idle = 1 - warps * COMPUTES / turn
        used = sheet.words(0, y, f"{warps} warp{'s' if warps > 1 else ''}", bold=True)
        said = f"the SM is idle {idle:.0%} of the time" if idle else "the SM is never idle"
        sheet.words(used + 10, y, said, colour=MUTED)
        lanes = Lanes(sheet, TURNS * turn, left=52)
        for warp in range(warps):
            top = y + 8 + warp * LANE
            lanes.lane(top, f"warp {warp + 1}")
            for start in (at * turn + warp * COMPUTES for at in range(-1, TURNS)):
                lanes.box(top, max(start + COMPUTES, 0), start + turn, WAIT, "waits", frame=True)
                if start >= 0:
                    lanes.box(top, start, start + COMPUTES, KERNEL)
                    lanes.box(y + 8 + warps * LANE, start, start + COMPUTES, GOOD)
        lanes.lane(y + 8 + warps * LANE, "SM")
