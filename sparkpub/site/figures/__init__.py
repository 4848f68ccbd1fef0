"""Figures: a chart with its rows, its sentence and its table. A kind of figure is a function and a line in `library`."""
