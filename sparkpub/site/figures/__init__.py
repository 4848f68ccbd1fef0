"""Figures: a chart with its rows, its sentence and its table. A kind of figure is one module and a line in `kinds`."""
