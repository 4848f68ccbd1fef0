"""A plan measured on several machines, through a Ray cluster that is there already.

Each machine has the loop of a collection without a fleet (`sparkpub.collect.session.work`); only the books are an actor
on the head (`ledger`), which alone writes records and commits. `cluster` is all that knows Ray, `node` what runs on a
machine, and `session` the operator's command.
"""
