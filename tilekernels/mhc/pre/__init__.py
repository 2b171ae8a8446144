"""mHC pre: mixes from the streams, and the layer's input as their weighted sum."""
