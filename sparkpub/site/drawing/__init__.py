"""Specifications of charts made into drawings and compiled Vega, at build time and without a browser."""
