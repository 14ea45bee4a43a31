"""Analysis of text: terms of every language, wording, token counts."""
