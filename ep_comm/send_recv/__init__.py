"""Point-to-point send and receive between pipeline stages."""
