"""What the page of things never to do says they cost."""
