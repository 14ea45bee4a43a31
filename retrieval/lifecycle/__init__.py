"""Operations on memories already written: export, history, bulk changes and deletion."""
