-- Profiles: a version, once written, is not changed.
create table profile (
    name        text not null,
    version     integer not null,
    parameters  jsonb not null,             -- all but name and version
    origin      text not null check (origin in ('shipped', 'written', 'tuned')),
    note        text not null default '',
    report      jsonb,                      -- what the gate measured of this version; null: nothing yet
    created_at  timestamptz not null default now(),
    primary key (name, version)
);

-- The newest row of a name says which version is live. `before` is the row that a rollback goes back to: the one
-- that was the newest at a promotion, and of a rollback's own row the one below the row it went back to.
create table profile_promotion (
    id       bigint generated always as identity primary key,
    name     text not null,
    version  integer not null,
    by       text not null check (by in ('promote', 'rollback', 'shipped')),
    before   bigint references profile_promotion,
    at       timestamptz not null default now(),
    foreign key (name, version) references profile
);
create index profile_promotion_newest on profile_promotion (name, id desc);

-- A version that answers a share of the live one's queries too, unseen by the callers.
create table profile_shadow (
    name     text primary key,
    version  integer not null,
    share    double precision not null check (share > 0 and share <= 1),
    foreign key (name, version) references profile
);

-- One row. Every writer of the tables above raises it first, so they take turns; readers ask whether it has changed.
create table profile_change (
    single   boolean primary key default true check (single),
    counter  bigint not null
);
insert into profile_change (counter) values (0);

-- Learned parts that came after the program, as ONNX files.
create table model (
    sha256      text primary key,           -- of the content, in hexadecimal
    kind        text not null check (kind in ('intent', 'weights', 'rescorer')),
    content     bytea not null,
    created_at  timestamptz not null default now()
);
