"""What a time is off by where a precaution is left out, and how far equals differ."""
