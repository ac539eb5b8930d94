"""`targetdp attack`: its commands, and what they show."""
