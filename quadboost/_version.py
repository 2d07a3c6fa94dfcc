# The only place that states the version; pyproject.toml reads it from here without importing the package.
__version__ = "0.1.0"
