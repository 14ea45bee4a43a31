"""Text analysis: terms in many languages, normalised wording, dates and periods."""
