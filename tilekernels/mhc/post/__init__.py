"""mHC post: mix the streams and add the layer's output."""
