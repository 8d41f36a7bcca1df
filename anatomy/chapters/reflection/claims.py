"""What is believed after two weeks, put to pairs of runs that were recorded for other questions."""

from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.table import Table, known, over_control, quotient, time_of, with_verdict
from anatomy.table import units

OPERATIONS = Need("roofline.operations")
BREAKS, MAP = Need("compilation.breaks"), Need("compilation.map")
REGISTERS = Need("reflection.registers")
MANY, FEW = "matmul, tf32", "softmax"
SMALL, LARGE = "training C=256 T=256", "training C=4096 T=4096"
WAITS = 0.5  # share of a step from which on the GPU mostly waits
WORTH = 0.9  # a step that takes less of its time has gained something


@claim(OPERATIONS)
def more_flops_can_be_faster(operations: Table) -> Finding:
    """A TF32 matmul of 4096 x 4096 matrices does at least ten times the operations of a softmax
    over fp32 rows in memory, and takes less time."""
    many, few = (operations.measured(name) for name in (MANY, FEW))
    took, longer = map(time_of, (many, few))
    more = Measured.counted(many["flops"] / few["flops"])
    outcome = quotient(took, longer).at_most(1.0) if more.at_least(10.0) else False
    seen = f"{more.text} the operations in {took.text} against {longer.text}."
    return answer(outcome, seen, more)


@claim(BREAKS, topic="fusion")
def fusion_helps_where_bytes_wait(breaks: Table) -> Finding:
    """Compiling halves the time of elementwise chains, and leaves that of large matmuls.

    Eager takes at least twice the time of compiled in the large elementwise chain, and at most a
    tenth more in the large matmuls."""
    cases = Cases()
    for op, right in (
        ("large elementwise", lambda over: over.at_least(2.0)),
        ("large products", lambda over: over.at_most(1.1)),
    ):
        with cases.at(chain=op) as case:
            row = breaks.measured("eager", op=op)
            over = over_control(row)
            case(right(over), over, f"{op} {with_verdict(row)}")
    return cases.finding(f"Eager over compiled: {cases.said()}.")


@claim(MAP, topic="CUDA graphs")
def graphs_pay_where_the_gpu_waits(steps: Table) -> Finding:
    """A CUDA graph makes a training step faster where the GPU mostly waits, and gains less than a
    tenth where it does not.

    Compiled into a graph a step is faster than eager if its GPU waits more than half of it, and
    takes at least 0.9 of the time if not; of a small layer and of a large one."""
    cases = Cases()
    for op in (SMALL, LARGE):
        with cases.at(step=op) as case:
            eager = steps.measured("eager", op=op)
            waits = known(eager, "gap_share", "how long its GPU waits was not recorded")
            row = steps.measured("reduce-overhead", op=op)
            over = over_control(row)
            right = over.says("faster") if waits > WAITS else over.at_least(WORTH)
            case(right, over, f"{op}, the GPU waits {units.percent(waits)}: {with_verdict(row)}")
    return cases.finding(f"In a graph over eager: {cases.said()}.")


@claim(REGISTERS, topic="memory hierarchy")
def an_index_leaves_the_registers(registers: Table) -> Finding:
    """Numbers that are asked for by an index of the moment do not stay in registers: the kernel
    takes at least twice as long.

    The same arithmetic on 32 numbers a thread, by a variable index over constant ones."""
    variable = "index known at run time"
    over, said = registers.beside_control(variable)
    held = registers.row(variable)["local_bytes"]
    return answer(over.at_least(2.0), f"{said} {held} bytes a thread lie in memory.", over)
