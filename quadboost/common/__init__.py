"""What every other package may use: checks of single arguments, threads, progress."""
