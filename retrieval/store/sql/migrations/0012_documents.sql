-- A document is its chunks: what it is put, read, listed and deleted by. Other memories are not in the index.
create index memory_document on memory (ns, document_id, position) where kind = 'chunk' and document_id is not null;
