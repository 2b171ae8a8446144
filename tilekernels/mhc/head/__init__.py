"""mHC head: the streams reduced to one hidden state."""
