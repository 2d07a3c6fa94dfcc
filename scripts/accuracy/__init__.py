"""The parts of benchmark_accuracy.py: tables, methods, figures and the page."""
