"""Two runs side by side: what differs, whether that is more than chance, and why.

`statistics` tells a difference from chance, `matching` finds the counterpart of each row, `tables` makes the DataFrames,
`sentence` says it in words, `result` is what `tfprof.compare` returns, and `kept_runs` what the kernel remembers.
"""
