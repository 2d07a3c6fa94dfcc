"""The commands; `main` parses their arguments and reports their errors."""
