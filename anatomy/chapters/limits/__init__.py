"""What a machine does at best: ceilings, bandwidth over size, floors of launches and waits."""
