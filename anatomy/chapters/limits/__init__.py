"""What a machine gives at best, bandwidth over working-set size, and what asking costs."""
