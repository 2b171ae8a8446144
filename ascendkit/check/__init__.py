"""Two loops over the registry of ops: is it right, and how far is it from the machine's limit.

Neither loop knows an op by name: everything it needs is in the op's folder. See
:mod:`ascendkit.op` for the files, :mod:`ascendkit.check.correctness` for what "right" covers.
"""
