"""Looking back on phase I: a quiz whose keys follow the machine, its models drawn from recordings."""
