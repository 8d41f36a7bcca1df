"""What launches cost by who asks for them, and what the size of a block is worth."""

from anatomy.claims import Cases, Finding, Need, answer, claim
from anatomy.claims.table import Table, quotient, time_of, why_not

RATES, SIZES = Need("launches.rates"), Need("launches.block_sizes")
LAUNCHES = "100 launches"
NEARLY = 1.05  # as fast, to who writes the kernel


@claim(RATES, topic="launches")
def asking_outlasts_an_empty_kernel(rates: Table) -> Finding:
    """Asking for a kernel from Python takes longer than an empty kernel runs.

    Host time of 100 PyTorch operations on one element, over GPU time of 100 empty kernels."""
    asks = time_of(rates.measured("PyTorch op", op=LAUNCHES, quantity="host_enqueue"))
    runs = time_of(rates.measured("PyTorch's empty kernel", op=LAUNCHES, quantity="gpu_warm"))
    over = quotient(asks, runs)
    return answer(over.at_least(1.0), f"{asks.text} to ask, {runs.text} to run: {over.text}.", over)


@claim(RATES, topic="launches")
def cpp_launches_twice_as_fast(rates: Table) -> Finding:
    """Most of a launch from Python is Python: a loop in C++ launches twice as fast.

    100 launches in a C++ loop take at most half of the time of 100 PyTorch operations."""
    ratio = rates.ratio("C++ loop", "PyTorch op", op=LAUNCHES, quantity="step_wall")
    return answer(ratio.at_most(0.5), f"C++ over Python: {ratio.text}.", ratio)


@claim(RATES, topic="launches")
def graphs_launch_fastest(rates: Table) -> Finding:
    """A CUDA graph launches its kernels faster than any loop.

    The replay of 100 empty kernels against 100 launches by each loop, on the wall."""
    cases = Cases()
    for loop in ("PyTorch's empty kernel", "C++ loop"):
        with cases.at(loop=loop) as case:
            ratio = rates.ratio("CUDA graph", loop, op=LAUNCHES, quantity="step_wall")
            case(ratio.says("faster"), ratio, f"over the {loop} {ratio.text}")
    return cases.finding(f"Graph {cases.said()}.")


@claim(SIZES, topic="launches")
def one_warp_a_block_is_slow(sizes: Table) -> Finding:
    """A block of one warp is too small: the vector add of 32 threads a block is slower.

    Blocks of 32 threads take at least 10 % longer than blocks of 256."""
    ratio = sizes.ratio("CUDA, 32", "CUDA, 256")
    return answer(ratio.at_least(1.1), f"32 threads over 256: {ratio.text}.", ratio)


@claim(SIZES, topic="launches")
def larger_blocks_gain_nothing(sizes: Table) -> Finding:
    """From 128 threads a block on, a larger block adds vectors no faster.

    Blocks of 256, 512 and 1,024 threads take at least 0.95 of the time of blocks of 128."""
    cases = Cases()
    for threads in (256, 512, 1024):
        with cases.at(threads=threads) as case:
            ratio = sizes.ratio(f"CUDA, {threads}", "CUDA, 128")
            case(ratio.at_least(1 / NEARLY), ratio, f"{threads} threads {ratio.text}")
    return cases.finding(f"Over 128 threads: {cases.said()}.")


@claim(SIZES, topic="launches")
def largest_blocks_beat_256(sizes: Table) -> Finding:
    """Blocks of 1,024 threads add vectors faster than blocks of 256.

    Blocks of 1,024 threads, the most that there can be, against blocks of 256."""
    ratio = sizes.ratio("CUDA, 1024", "CUDA, 256")
    return answer(ratio.says("faster"), f"1,024 threads over 256: {ratio.text}.", ratio)


@claim(SIZES, topic="launches")
def five_lines_of_triton_match_pytorch(sizes: Table) -> Finding:
    """A Triton kernel of five lines adds vectors as fast as PyTorch's own kernel.

    The best of Triton's blocks takes at most 5 % longer than torch.add."""
    made = [row for row in sizes if str(row.get("made_with")).startswith("Triton")]
    timed = [row for row in made if not why_not(row)]
    best = min(timed, key=lambda row: row["median_s"], default={"variant": "Triton, 4 warps, 1024"})
    ratio = sizes.ratio(best["variant"], "torch.add")
    return answer(ratio.at_most(NEARLY), f"{best['variant']} over torch.add: {ratio.text}.", ratio)
