"""What tables are made of, for all rooms: columns, units, intervals, formulas, kernels, errors."""
