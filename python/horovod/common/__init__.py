"""What the frameworks' packages share."""
