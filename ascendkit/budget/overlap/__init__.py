"""How operators overlap: chains of calls over shared resources, pipelines over ranks."""
