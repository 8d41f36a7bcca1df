"""Views, strides and alignment of a matrix: what they cost a product, what mends it."""
