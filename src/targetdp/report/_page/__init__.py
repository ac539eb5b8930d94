"""The decision page: one HTML file that shows an official what each setting costs and protects."""
