"""Which machine this is, which software it has, and what its driver says of clocks, power and
temperature. None of it loads torch before it asks torch something.
"""
