"""How operators overlap: chains of calls over shared resources, and pipeline schedules over ranks."""
