"""Every rank gets the shards of all; values counts the gathered tensor."""
