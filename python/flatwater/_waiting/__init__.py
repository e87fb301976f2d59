"""How calls wait: the turns of other tasks, what is left of a deadline, and in which block a call is made."""
