"""A known cache before every cold call.

A benchmark that calls one function again and again on the same buffers reads them from the L2
cache, which real code, with other work in between, would not. A cold sample therefore begins with
an L2 that holds nothing of the caller's.
"""

from pathlib import Path

import torch
from torch import Tensor

# A CPU whose last-level cache cannot be read is flushed with this much; larger than most.
CPU_CACHE_BYTES = 64 * 2**20
# How many cache sizes are read to push everything else out. The replacement policy is not
# published; twice the size leaves room for one that is not strictly least-recently-used.
FLUSH_FACTOR = 2
# More sets of buffers than this are not worth their memory and their setting up.
MOST_SETS = 32


class Flush:
    """Evicts the last-level cache of one device, and leaves it clean rather than dirty.

    The buffer is first written, then another one of `FLUSH_FACTOR` caches is read. Writing alone
    would leave a cache full of dirty lines, whose write-back would then be charged to the timed
    call: on a 60 MB cache that is up to 60 MB of somebody else's traffic.

    Args:
        device: The device whose cache is flushed.
    """

    def __init__(self, device: torch.device) -> None:
        self.cache_bytes = last_level_cache_bytes(device)
        self.bytes = FLUSH_FACTOR * self.cache_bytes
        elements = max(self.cache_bytes // 4, 1)
        # Not inference tensors, though the first comparison of a process may run in that mode: the
        # next one may not, and writing to them would then be refused.
        with torch.inference_mode(False):
            self._written = torch.zeros(elements, dtype=torch.int32, device=device)
            self._read: Tensor = torch.zeros(
                FLUSH_FACTOR * elements, dtype=torch.float32, device=device
            )
            self._sink = torch.empty((), dtype=torch.float32, device=device)

    def __call__(self) -> None:
        """Queue the flush on the current stream (CUDA), or do it (CPU)."""
        self._written.add_(1)
        torch.sum(self._read, dim=0, out=self._sink)


def last_level_cache_bytes(device: torch.device) -> int:
    """Size in bytes of the cache between the device's cores and its memory, as it reports it."""
    if device.type == "cuda":
        # Some virtual GPUs report no size: flush as much as the largest L2 sold today then.
        return torch.cuda.get_device_properties(device).L2_cache_size or 128 * 2**20
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
    """How many sets of buffers, used in turn, keep a callable's inputs out of the cache.

    Args:
        footprint_bytes: What one call reads of its own set, in bytes.
        device: Where it runs.

    Returns:
        At least 2; or 1 if so many sets would be needed that flushing is the better way.
    """
    sets = -(-FLUSH_FACTOR * last_level_cache_bytes(device) // max(footprint_bytes, 1))
    return 1 if sets > MOST_SETS else max(2, sets)
