"""The demo conversation of a community bike workshop, with questions and their evidence."""
