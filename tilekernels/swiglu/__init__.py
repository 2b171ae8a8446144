"""SwiGLU activation, optionally with a quantised output."""
