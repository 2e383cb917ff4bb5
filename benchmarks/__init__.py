"""Benchmarks: run time and memory of trueodds, compared with other packages, with reading a file, and as data grow.

`python -m benchmarks --help` lists them. The comparison with other packages is the folder `peers`; every other
benchmark is a module of this folder.
"""
