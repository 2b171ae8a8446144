"""What this machine can run, what the suite holds, and which variables steer it."""
