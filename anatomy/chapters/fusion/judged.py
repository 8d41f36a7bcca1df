"""How many kernels a call launches, counted in the list of their names."""

from anatomy.judge.rules import rule

NO_KERNELS = ("Memset", "Memcpy")  # entries of a list of kernels that are none


@rule("fusion.chains", "fusion.patterns", "fusion.matmuls", columns=("launched",), source="kernels")
def launched(rows, known):
    """Kernels by name; the driver fills a few bytes before some, which is no work of the call's."""
    for place, row in enumerate(rows):
        if "kernels" in row:  # null where nobody listed them; a list without any has lost them
            real = [name for name in row["kernels"] or () if not name.startswith(NO_KERNELS)]
            yield place, {"launched": len(real) or None}
