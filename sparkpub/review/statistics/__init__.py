"""Statistics on plain arrays: NumPy and scipy.special do the work, and each function names its source.

The tests hold it against scipy.stats and statsmodels. It does not call them, nor pymannkendall or pyhomogeneity:

- `check` of 350 runs takes 2 s, and importing scipy.stats, which the others need as well, takes 0.6 s more;
- Kendall's and Theil's tests go through scipy.stats row by row, at 0.2 ms a sample; here a thousand samples take 5 ms;
- none of them counts runs that resemble each other, share a server or are rounded by what they are (`describe`), and
  none has the interval that decides (`compare`).
"""
