"""Looking back on phase I: a quiz whose keys follow the machine, models drawn from recordings."""
