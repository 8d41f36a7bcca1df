"""How large the cache is that a cold call must not find anything in, and how to keep it out. Called
again and again on the same buffers, a function reads them from the L2 cache, which real code, with
other work in between, would not. Before a cold sample the cache is therefore flushed
(`clock.Flush`), or several sets of buffers are used in turn (`rotation`)."""

from pathlib import Path

import torch

# A CPU whose last-level cache cannot be read is flushed with this much; larger than most.
CPU_CACHE_BYTES = 64 * 2**20
# Some virtual GPUs report no size: flush as much as the largest L2 sold today then.
GPU_CACHE_BYTES = 128 * 2**20
# How many cache sizes are read to push everything else out. The replacement policy is not
# published; twice the size leaves room for one that is not strictly least-recently-used.
FLUSH_FACTOR = 2
# More sets of buffers than this are not worth their memory and their setting up.
MOST_SETS = 32


def last_level_cache_bytes(device: torch.device) -> int:
    """Size in bytes of the cache between the device's cores and its memory, as it reports it."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).L2_cache_size or GPU_CACHE_BYTES
    sizes = [
        _parse_size(path.read_text())
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    return max(sizes, default=CPU_CACHE_BYTES)


def _parse_size(text: str) -> int:
    """Bytes in Linux's notation for a cache size, such as `32768K`."""
    text = text.strip()
    scale = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * scale


def rotation(footprint_bytes: int, device: torch.device) -> int:
    """How many sets of buffers, used in turn, keep a callable's inputs out of the cache. One call
    reads `footprint_bytes` of its own set. At least 2; or 1 if so many sets would be needed that
    flushing is the better way."""
    sets = -(-FLUSH_FACTOR * last_level_cache_bytes(device) // max(footprint_bytes, 1))
    return 1 if sets > MOST_SETS else max(2, sets)
