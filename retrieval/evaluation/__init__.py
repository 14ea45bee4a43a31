"""Judging the rankings on evaluation folders: metrics, confidence intervals, TREC files, reports."""
