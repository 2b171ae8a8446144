"""What each instruction must compute, in NumPy. Nothing here knows the emulator.

Sources: the docstrings of TileLang's SIMD language, the operand order of its code templates, IEEE
754 and the OCP formats. Where those leave a choice, the function says which is taken: inferred from
use, or guessed.
"""
