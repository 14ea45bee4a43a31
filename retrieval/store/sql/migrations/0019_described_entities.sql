-- Which entities came, went or got another name, of those that an index keeps names of (docs/decisions/0035).
alter table memory_change add column entities bigint[];
