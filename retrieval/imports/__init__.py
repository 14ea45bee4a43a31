"""Readers of other programs' exports: a file in, memories and named omissions out; nothing here writes."""
