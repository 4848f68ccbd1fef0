"""Sentences with a computed verdict."""
