"""The three tables that every figure is taken from: runs, cells and comparisons.

    dataset ─▶ runs ─▶ cells
                   └─▶ comparisons

Each is a pandas DataFrame, made once by its module, whose `COLUMNS` say what it holds. Whoever needs a figure selects
rows: nothing else works one out again.
"""
