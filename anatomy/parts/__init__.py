"""Pieces of torch that several chapters measure: models, products, attention, compiled layers."""
