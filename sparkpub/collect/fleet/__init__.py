"""A plan measured on several machines, through a Ray cluster that is there already.

`cluster` is all that knows Ray, `node` what runs on each machine, `accept` who may measure, and `session` the head: it
alone writes records and commits.
"""
