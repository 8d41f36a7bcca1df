"""Lines that make the host wait for the GPU: which they are, and what they cost."""
