-- A publication of all tables refuses deletes and updates in those whose rows nothing identifies.
alter table memory_change replica identity full;
alter table memory_change_trimmed replica identity full;
