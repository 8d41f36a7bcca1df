"""Elements of a vector, and who works on each: a thread of a block, or a whole block at once."""

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, MUTED, THIRD, Canvas

ELEMENTS, BLOCK = 12, 4
CELL = 26.0  # pixels high


def block_elements() -> str:
    """Twelve elements in three blocks of four: CUDA's threads, and Triton's programs.

    block_elements()
    """
    label = (
        "Twelve elements in three blocks of four. In CUDA each element has a thread: element 6 is "
        "thread 2 of block 1. In Triton each block of elements has a program."
    )
    return f'<figure class="shown">{canvas.both(_drawn, label)}</figure>'


def _drawn(sheet: Canvas) -> None:
    left = 92.0 if sheet.width > 500 else 0.0
    each = (sheet.width - left) / ELEMENTS
    y = 4.0
    for title, blocks in (("elements", ""), ("threads", "block"), ("programs", "program")):
        if not left:
            y += 16
        sheet.words(0, y + (17 if left else -5), title, bold=True)
        for at in range(ELEMENTS if title != "programs" else 0):
            text = str(at if title == "elements" else at % BLOCK)
            colour = MUTED if title == "elements" else GOOD
            x = left + at * each
            sheet.box(x + 1, y, each - 2, CELL, edge=colour, fill=colour, opacity=0.12)
            sheet.words(x + each / 2, y + 17, text, size=11, anchor="middle")
        for at in range(ELEMENTS // BLOCK if blocks else 0):
            x, wide = left + at * BLOCK * each, BLOCK * each
            name = f"{blocks} {at}"
            if title == "threads":
                sheet.bracket(x + 3, x + wide - 3, y + CELL + 8, GOOD)
                sheet.words(x + wide / 2, y + CELL + 21, name, anchor="middle", bold=True)
                continue
            sheet.box(x + 1, y, wide - 2, CELL, edge=THIRD, fill=THIRD, opacity=0.15)
            said = f"{name}: elements {at * BLOCK} to {at * BLOCK + BLOCK - 1}" if left else name
            sheet.words(x + wide / 2, y + 17, said, size=11, anchor="middle")
        y += CELL + (34 if title == "threads" else 10)
