"""What tables are made of, for both halves of the package: columns, each declared once, units,
intervals, formulas for operations and bytes, and the errors that every room raises.
"""
