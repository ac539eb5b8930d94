"""What people look at: the decision page and the figures. A report draws what it is handed."""
