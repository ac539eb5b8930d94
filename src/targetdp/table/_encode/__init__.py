"""How columns that are no plain numbers become numbers, and the way back."""
