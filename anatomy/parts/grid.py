"""A map is measured cell by cell; here its cells become one table."""

from collections.abc import Sequence

import pandas as pd

# Columns that pages and claims read of any cell, whether or not one of them could be measured.
PROMISED = ("median_s", "ratio", "verdict", "kernels_per_call")


def joined(tables: Sequence[pd.DataFrame], promised: Sequence[str] = ()) -> pd.DataFrame:
    """The tables one below the other, with the columns promised even where all cells refuse.

    Args:
        tables: One per cell.
        promised: Columns beside those of `PROMISED`.
    """
    table = pd.concat(tables, ignore_index=True)
    for column in (*PROMISED, *promised):
        if column not in table:
            table[column] = None
    return table


def with_counts(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Columns that count, as whole numbers again: rows without a value make pandas forget it.

    Args:
        table: Rows of several comparisons.
        columns: Names of columns of whole numbers, some of them missing.
    """
    whole = {
        name: pd.Series([None if pd.isna(n) else int(n) for n in table[name]], dtype=object)
        for name in columns
    }
    return table.assign(**whole)
