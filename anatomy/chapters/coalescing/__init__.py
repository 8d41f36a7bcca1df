"""What a warp asks for at a time, what that moves, and how fast it comes."""
