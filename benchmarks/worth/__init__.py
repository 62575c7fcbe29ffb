"""What a plant gains by joining: its own detector beside a shared one."""
