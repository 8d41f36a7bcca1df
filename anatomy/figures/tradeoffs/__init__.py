"""What a technique costs and gives, on a page: break-even, frontiers, growth."""
