"""Run times of trueodds and of comparable packages ("peers"), on the same data and checked for equal results.

`jobs` lists what is computed, `job_data` simulates the data, and `tools` has a module per package with its calls. `run`
starts a process per package, whose program is `worker`, and returns the `results`; `table`, `page` and `figure` show
them.
"""
