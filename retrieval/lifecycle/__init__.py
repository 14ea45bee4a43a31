"""What becomes of memories after they were written: export, history, changes and deletion of many."""
