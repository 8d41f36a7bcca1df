"""What one call of an operator costs the CPU, and at which dispatch keys it stops on its way."""
