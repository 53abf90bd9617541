"""The command language: text to `model.commands`, settings to text."""
