"""What a machine gives at best and what asking it costs at least: the ceilings that shares are of,
bandwidth over working-set size, and the floors under every launch and wait.
"""
