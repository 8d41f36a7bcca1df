"""What a machine gives at best: ceilings, and bandwidth over working-set size; and what asking
costs."""
