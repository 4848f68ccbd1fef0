"""Figures: a chart with its rows, its sentence and its table. A kind is a function, and a line in `library`."""
