-- Long work and how far it is. Its process writes every few seconds; one that has stopped writing has died.
create table job (
    ns           integer not null,
    id           text not null,              -- in the order of their beginnings
    kind         text not null check (kind in ('import', 'reembed')),
    state        text not null default 'running' check (state in ('running', 'done', 'failed', 'interrupted')),
    done         bigint not null,
    total        bigint,                     -- null: not known
    started_at   timestamptz not null,
    updated_at   timestamptz not null default now(),
    finished_at  timestamptz,
    error        text,
    primary key (ns, id)
);
create unique index job_reembed on job (ns) where kind = 'reembed' and state = 'running';
