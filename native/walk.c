/* A walk over the graph of a namespace: the nodes collected so far, the hops, and the scores of memories.

   `graph/neighbourhood.py` documents the calls. Calls that extend the walk return a negative number if out of memory;
   after that the walk may only be freed. */
#include "graph.h"

enum { NONE = -1 };

typedef struct {
    int64_t entity, mentions;
    double strength; /* of the entity, as set by the hop that reached it */
    double rarity;
    int32_t hop;
    int32_t bridge; /* whether the walk restarts here, besides the seeds */
} column;

typedef struct {
    int64_t doc;
    double anchored; /* strength as an anchor, 0 if none */
    double pull;     /* activation by the last hop, 0 if that did not meet it */
    int32_t ways;    /* index of the first edge */
} row;

typedef struct {
    double weight;
    int32_t column, next; /* a memory's edges are a linked list, ordered by entity id */
} way;

typedef struct {
    double key;
    int64_t number;
    int32_t mentions, joined;
} ranked;

typedef struct {
    double memories, greatest; /* `greatest` is the last hop's greatest pull, also of memories without room */
    int64_t most_nodes, n_seeds, n_columns, n_rows, n_met, n_ways, most_ways, mask;
    int32_t hops;
    column *columns;
    row *rows; /* those met since `reserve` follow, up to n_met */
    way *ways;
    int32_t *places; /* hash table of the rows' indices */
} trivet_walk;

static int64_t room_of(const trivet_walk *walk) {
    int64_t room = walk->most_nodes - walk->n_columns - walk->n_rows;
    return room > 0 ? room : 0;
}

/* The place of a memory's index in the hash table; it holds NONE for a new one. */
static int32_t *place_of(const trivet_walk *walk, int64_t doc) {
    uint64_t hash = (uint64_t)doc * 0x9e3779b97f4a7c15u;
    int64_t at = (int64_t)(hash >> 32) & walk->mask;
    while (walk->places[at] != NONE && walk->rows[walk->places[at]].doc != doc) at = (at + 1) & walk->mask;
    return walk->places + at;
}

/* Make room to meet that many memories, and index those kept so far; 0 if out of memory. */
static int reserve(trivet_walk *walk, int64_t more) {
    int64_t most = walk->n_rows + more, size = 16;
    while (size < 2 * most) size *= 2;
    row *rows = realloc(walk->rows, (size_t)(most + 1) * sizeof *rows);
    if (rows) walk->rows = rows;
    int32_t *places = realloc(walk->places, (size_t)size * sizeof *places);
    if (places) walk->places = places;
    if (!rows || !places) return 0;
    walk->n_met = walk->n_rows, walk->mask = size - 1;
    memset(places, 0xff, (size_t)size * sizeof *places);
    for (int32_t at = 0; at < walk->n_rows; at++) *place_of(walk, rows[at].doc) = at;
    return 1;
}

/* The row of a memory, which is added after the others if it is new. */
static row *row_of(trivet_walk *walk, int64_t doc) {
    int32_t *place = place_of(walk, doc);
    if (*place == NONE) {
        *place = (int32_t)walk->n_met;
        walk->rows[walk->n_met++] = (row){doc, 0, 0, NONE};
    }
    return walk->rows + *place;
}

/* Keep the first of the rows met, as far as there is room. */
static void keep(trivet_walk *walk) { walk->n_rows += lesser(walk->n_met - walk->n_rows, room_of(walk)); }

/* By descending key, then by ascending number. */
static int is_before(const ranked *one, const ranked *other) {
    return one->key > other->key || (one->key == other->key && one->number < other->number);
}

TRIVET_DEFINE_SORT(sort, ranked, is_before)

static int is_more_pulled(const row *one, const row *other) {
    return one->pull > other->pull || (one->pull == other->pull && one->doc < other->doc);
}

TRIVET_DEFINE_SORT(sort_rows, row, is_more_pulled)

/* Add an edge to a memory unless it has one to that entity; 0 if out of memory. */
static int tie(trivet_walk *walk, row *from, int32_t to, double weight) {
    if (walk->n_ways == walk->most_ways) {
        int64_t most = 2 * walk->most_ways;
        way *grown = most > INT32_MAX ? NULL : realloc(walk->ways, (size_t)most * sizeof *grown);
        if (!grown) return 0;
        walk->ways = grown, walk->most_ways = most;
    }
    int64_t entity = walk->columns[to].entity;
    int32_t *at = &from->ways;
    while (*at != NONE && walk->columns[walk->ways[*at].column].entity < entity) at = &walk->ways[*at].next;
    if (*at != NONE && walk->ways[*at].column == to) return 1;
    walk->ways[walk->n_ways] = (way){weight, to, *at};
    *at = (int32_t)walk->n_ways++;
    return 1;
}

static double weight_of(const trivet_walk *walk, const way *edge) {
    return edge->weight * walk->columns[edge->column].rarity;
}

/* Activate the memories that a hop met; of new ones keep the most activated. */
static void settle(trivet_walk *walk) {
    walk->greatest = 0;
    for (row *each = walk->rows; each < walk->rows + walk->n_met; each++) {
        each->pull = 0;
        for (int32_t edge = each->ways; edge != NONE; edge = walk->ways[edge].next) {
            const column *to = walk->columns + walk->ways[edge].column;
            if (to->hop == walk->hops) each->pull += weight_of(walk, walk->ways + edge) * to->strength;
        }
        if (each->pull > walk->greatest) walk->greatest = each->pull;
    }
    sort_rows(walk->rows + walk->n_rows, walk->n_met - walk->n_rows);
    keep(walk);
    walk->hops++;
}

static double idf(const trivet_walk *walk, int64_t mentions) {
    return log(1 + walk->memories / (double)(mentions > 1 ? mentions : 1));
}

static void join(trivet_walk *walk, int64_t entity, int64_t mentions, double strength, int bridge) {
    double rarity = idf(walk, mentions) / log(1 + walk->memories);
    walk->columns[walk->n_columns++] = (column){entity, mentions, strength, rarity, walk->hops, bridge};
}

void trivet_walk_free(trivet_walk *walk) {
    if (!walk) return;
    free(walk->columns);
    free(walk->rows);
    free(walk->ways);
    free(walk->places);
    free(walk);
}

/* An empty walk in a namespace of `memories` memories; NULL if out of memory. */
trivet_walk *trivet_walk_new(int64_t memories, int64_t most_nodes) {
    trivet_walk *walk = calloc(1, sizeof *walk);
    if (!walk) return NULL;
    walk->memories = (double)memories, walk->most_nodes = most_nodes, walk->most_ways = 1024;
    walk->columns = malloc((size_t)(most_nodes + 1) * sizeof *walk->columns);
    walk->ways = malloc((size_t)walk->most_ways * sizeof *walk->ways);
    if (walk->columns && walk->ways) return walk;
    trivet_walk_free(walk);
    return NULL;
}

int64_t trivet_walk_rows(const trivet_walk *walk) { return walk->n_rows; }

int64_t trivet_walk_columns(const trivet_walk *walk) { return walk->n_columns; }

/* Edges from the memories met so far to hubs: seeds with so many mentions that only the latest were taken. */
static int meet_hubs(trivet_walk *walk, const trivet_graph *graph, int64_t most) {
    int64_t n = walk->n_columns, n_hubs = 0;
    for (int64_t at = 0; at < n; at++) n_hubs += walk->columns[at].mentions > most;
    if (!n_hubs || n == 1) return 1;
    /* Of the seeds per segment, NONE for those that are no hubs. */
    int64_t *codes = malloc((size_t)(n * graph->n_segments + 1) * sizeof *codes);
    trivet_ways *ways = malloc((size_t)(walk->n_met + 1) * sizeof *ways);
    int done = codes && ways;
    for (int64_t at = 0; done && at < n * graph->n_segments; at++) {
        const column *seed = walk->columns + at % n;
        codes[at] = seed->mentions > most ? trivet_code_of(graph->segments + at / n, seed->entity) : NONE;
    }
    for (int64_t at = 0; done && at < walk->n_met; at++) { /* prefetch, as none of it is cached */
        ways[at] = trivet_ways_of(graph, walk->rows[at].doc, walk->most_nodes);
        for (int64_t edge = 0; edge < ways[at].count; edge += 16) __builtin_prefetch(ways[at].codes + edge);
    }
    for (int64_t at = 0; done && at < walk->n_met; at++) {
        const int64_t *of_seeds = codes + (ways[at].count ? ways[at].segment - graph->segments : 0) * n;
        for (int64_t edge = 0; edge < ways[at].count; edge++)
            for (int32_t seed = 0; done && seed < n; seed++)
                if (ways[at].codes[edge] == of_seeds[seed])
                    done = tie(walk, walk->rows + at, seed, ways[at].segment->levels[ways[at].weights[edge]]);
    }
    free(codes);
    free(ways);
    return done;
}

static int meet_latest(trivet_walk *walk, const trivet_graph *graph, const uint8_t *eligible, int64_t n_eligible,
                       int64_t first_column, int64_t scanned, int64_t most) {
    int64_t *docs = malloc((size_t)(most + 1) * sizeof *docs);
    double *weights = malloc((size_t)(most + 1) * sizeof *weights);
    int done = docs && weights;
    for (int64_t of = first_column; done && of < walk->n_columns; of++) {
        int64_t found = trivet_latest_of(graph, eligible, n_eligible, walk->columns[of].entity, scanned, most, docs,
                                         weights);
        for (int64_t at = 0; done && at < found; at++)
            done = tie(walk, row_of(walk, docs[at]), (int32_t)of, weights[at]);
    }
    free(docs);
    free(weights);
    return done;
}

/* Hop 0: the seeds and their latest memories. */
int64_t trivet_walk_begin(trivet_walk *walk, const trivet_graph *graph, const uint8_t *eligible, int64_t n_eligible,
                          const int64_t *entities, const int64_t *mentions, const double *scores, int64_t n_seeds,
                          int64_t scanned, int64_t most) {
    walk->n_seeds = n_seeds = lesser(n_seeds, room_of(walk));
    for (int64_t at = 0; at < n_seeds; at++) join(walk, entities[at], mentions[at], scores[at], 0);
    if (!reserve(walk, n_seeds * most) || !meet_latest(walk, graph, eligible, n_eligible, 0, scanned, most) ||
        !meet_hubs(walk, graph, most))
        return NONE;
    settle(walk);
    return 0;
}

/* Restart the walk at some memories, as far as there is room. */
int64_t trivet_walk_anchor(trivet_walk *walk, const int64_t *docs, const double *strengths, int64_t n_docs) {
    if (!reserve(walk, n_docs)) return NONE;
    for (int64_t at = 0; at < n_docs; at++) row_of(walk, docs[at])->anchored = strengths[at];
    keep(walk);
    return 0;
}

/* The memories most activated by the last hop, with activation in (0, 1]; returns their number, at most `count`. */
int64_t trivet_walk_best(const trivet_walk *walk, int64_t count, int64_t *docs, double *pulls) {
    ranked *order = malloc((size_t)(walk->n_rows + 1) * sizeof *order);
    if (!order) return NONE;
    int64_t found = 0;
    for (int64_t at = 0; at < walk->n_rows; at++)
        if (walk->rows[at].pull > 0) order[found++] = (ranked){walk->rows[at].pull, walk->rows[at].doc, 0, 0};
    sort(order, found);
    count = lesser(found, count);
    for (int64_t at = 0; at < count; at++) docs[at] = order[at].number, pulls[at] = order[at].key / walk->greatest;
    free(order);
    return count;
}

/* Candidates of a hop: the entities most activated by some memories, and those joined by relations. */
typedef struct {
    ranked *pulled; /* key: pull, later strength; number: entity; joined: by a relation */
    int64_t count;
} fan;

/* The candidate of an entity, added if there is none. */
static ranked *entry_of(fan *within, int64_t entity) {
    int64_t at = 0;
    while (at < within->count && within->pulled[at].number != entity) at++;
    if (at == within->count) within->pulled[within->count++] = (ranked){0, entity, 0, 0};
    return within->pulled + at;
}

static int32_t column_of(const trivet_walk *walk, int64_t entity) {
    for (int32_t at = 0; at < walk->n_columns; at++)
        if (walk->columns[at].entity == entity) return at;
    return NONE;
}

static void pull(const trivet_walk *walk, const trivet_graph *graph, const int64_t *top, const double *strengths,
                 int64_t n_top, int64_t looked, int64_t most, fan *made) {
    for (int64_t at = 0; at < n_top; at++) {
        trivet_ways ways = trivet_ways_of(graph, top[at], looked);
        for (int64_t edge = 0; edge < ways.count; edge++) {
            int64_t entity;
            if (!trivet_entity_at(&ways, edge, &entity) || column_of(walk, entity) != NONE) continue;
            double weight = ways.segment->levels[ways.weights[edge]];
            ranked *entry = entry_of(made, entity);
            entry->key = fmax(entry->key, strengths[at] * weight * weight);
        }
    }
    sort(made->pulled, made->count);
    made->count = lesser(made->count, most);
}

static void add_joined(const int64_t *entities, const double *strengths, int64_t count, fan *made) {
    for (int64_t at = 0; at < count; at++) {
        ranked *entry = entry_of(made, entities[at]);
        entry->key += strengths[at];
        entry->joined = 1;
    }
}

/* One hop from some memories and along some relations; returns the number of entities reached. */
int64_t trivet_walk_onward(trivet_walk *walk, const trivet_graph *graph, const uint8_t *eligible, int64_t n_eligible,
                           const int64_t *top, const double *strengths, int64_t n_top, const int64_t *joined,
                           const double *joined_strengths, int64_t n_joined, int64_t entities, int64_t looked,
                           int64_t scanned, int64_t most, int64_t cap, int64_t from_anchors) {
    fan found = {malloc((size_t)(n_top * looked + n_joined + 1) * sizeof *found.pulled), 0};
    if (!found.pulled) return NONE;
    pull(walk, graph, top, strengths, n_top, looked, 3 * entities / 2, &found);
    add_joined(joined, joined_strengths, n_joined, &found);
    int64_t kept = 0, first_column = walk->n_columns;
    for (int64_t at = 0; at < found.count; at++) {
        ranked each = found.pulled[at];
        int64_t mentions = trivet_mentions_of(graph, each.number, cap);
        if (mentions < 2 && !each.joined) continue;
        each.key *= idf(walk, mentions);
        each.mentions = (int32_t)mentions;
        found.pulled[kept++] = each;
    }
    sort(found.pulled, kept);
    kept = lesser(kept, entities);
    double strongest = kept && found.pulled[0].key > 0 ? found.pulled[0].key : 1;
    int64_t came = lesser(kept, room_of(walk));
    for (int64_t at = 0; at < came; at++) {
        ranked each = found.pulled[at];
        join(walk, each.number, each.mentions, each.key / strongest, each.joined || from_anchors);
    }
    free(found.pulled);
    if (!kept) return 0;
    if (!reserve(walk, came * most + n_top) ||
        !meet_latest(walk, graph, eligible, n_eligible, first_column, scanned, most))
        return NONE;
    for (int64_t at = 0; at < n_top; at++) {
        trivet_ways ways = trivet_ways_of(graph, top[at], looked);
        for (int64_t edge = 0; edge < ways.count; edge++) {
            int64_t entity;
            int32_t to = trivet_entity_at(&ways, edge, &entity) ? column_of(walk, entity) : NONE;
            double weight = ways.segment->levels[ways.weights[edge]];
            if (to != NONE && !tie(walk, row_of(walk, top[at]), to, weight)) return NONE;
        }
    }
    settle(walk);
    return kept;
}

/* The restart distribution over entities and memories: shares for seeds, bridges, and anchors by their strength. */
static void restart_of(const trivet_walk *walk, const double *shares, double *entities, double *memories) {
    double sums[3] = {0}, total = 0;
    for (int64_t at = 0; at < walk->n_columns; at++) {
        int restarts = at < walk->n_seeds || walk->columns[at].bridge;
        entities[at] = restarts ? walk->columns[at].strength : 0;
        sums[at >= walk->n_seeds] += entities[at];
    }
    for (int64_t at = 0; at < walk->n_rows; at++) sums[2] += memories[at] = walk->rows[at].anchored;
    for (int part = 0; part < 3; part++) sums[part] = shares[part] / (sums[part] != 0 ? sums[part] : 1);
    for (int64_t at = 0; at < walk->n_columns; at++) total += entities[at] *= sums[at >= walk->n_seeds];
    for (int64_t at = 0; at < walk->n_rows; at++) total += memories[at] *= sums[2];
    if (total == 0) return;
    for (int64_t at = 0; at < walk->n_columns; at++) entities[at] /= total;
    for (int64_t at = 0; at < walk->n_rows; at++) memories[at] /= total;
}

/* Solve a linear system in place by Gaussian elimination; `sides` becomes the solution. No rows need to be exchanged:
   in each column the diagonal exceeds the sum of all others (Golub and Van Loan, "Matrix Computations", 3.4.10). */
static void solve(double *system, double *sides, int64_t count) {
    for (int64_t step = 0; step < count; step++)
        for (int64_t below = step + 1; below < count; below++) {
            double factor = system[below * count + step] / system[step * count + step];
            if (factor == 0) continue;
            for (int64_t at = step; at < count; at++) system[below * count + at] -= factor * system[step * count + at];
            sides[below] -= factor * sides[step];
        }
    for (int64_t step = count - 1; step >= 0; step--) {
        for (int64_t at = step + 1; at < count; at++) sides[step] -= system[step * count + at] * sides[at];
        sides[step] /= system[step * count + step];
    }
}

/* Personalised PageRank of the memories; `work` has room for columns * (columns + 3) + rows numbers.

   With P the transition along edges, in proportion to their weight, p = (1 - d) restart + d P p (Haveliwala, WWW 2002).
   On the two sides this is m = (1 - d) s + d T e for memories and e = (1 - d) r + d U m for entities, so e solves
   (I - d^2 U T) e = (1 - d) (r + d U s): a small linear system whose columns its diagonal dominates, as d < 1. From an
   entity without edges the walk restarts at the entities; at a memory without edges it ends. */
static void pagerank(const trivet_walk *walk, const double *shares, double damping, double *work, double *memories) {
    int64_t n = walk->n_columns;
    double *system = work, *entities = system + n * n, *out = entities + n, *back = out + n, *restart = back + n;
    memset(system, 0, (size_t)(n * n + 2 * n) * sizeof *work);
    restart_of(walk, shares, back, restart);
    double at_entities = 0;
    for (int64_t at = 0; at < n; at++) at_entities += back[at], system[at * n + at] = 1;
    for (int64_t at = 0; at < walk->n_rows; at++)
        for (int32_t edge = walk->rows[at].ways; edge != NONE; edge = walk->ways[edge].next)
            out[walk->ways[edge].column] += weight_of(walk, walk->ways + edge);
    for (int64_t at = 0; at < walk->n_rows; at++) {
        double out_of_memory = 0;
        for (int32_t edge = walk->rows[at].ways; edge != NONE; edge = walk->ways[edge].next)
            out_of_memory += weight_of(walk, walk->ways + edge);
        if (out_of_memory == 0) continue;
        for (int32_t edge = walk->rows[at].ways; edge != NONE; edge = walk->ways[edge].next) {
            int64_t to = walk->ways[edge].column;
            double to_entity = weight_of(walk, walk->ways + edge) / out_of_memory;
            entities[to] += to_entity * restart[at];
            for (int32_t from = walk->rows[at].ways; from != NONE; from = walk->ways[from].next) {
                int64_t of = walk->ways[from].column;
                if (out[of] != 0)
                    system[to * n + of] -= damping * damping * to_entity * weight_of(walk, walk->ways + from) / out[of];
            }
        }
    }
    for (int64_t at = 0; at < n; at++) {
        entities[at] = (1 - damping) * (back[at] + damping * entities[at]);
        for (int64_t of = 0; of < n && at_entities > 0; of++)
            if (out[of] == 0) system[at * n + of] -= damping * back[at] / at_entities;
    }
    solve(system, entities, n);
    for (int64_t at = 0; at < walk->n_rows; at++) {
        double reached = 0;
        for (int32_t edge = walk->rows[at].ways; edge != NONE; edge = walk->ways[edge].next) {
            int32_t of = walk->ways[edge].column;
            if (out[of] != 0) reached += weight_of(walk, walk->ways + edge) / out[of] * entities[of];
        }
        memories[at] = (1 - damping) * restart[at] + damping * reached;
    }
}

/* The collected memories with a positive PageRank, divided by the greatest, best first. */
int64_t trivet_walk_ranked(const trivet_walk *walk, double seeds_share, double bridges_share, double anchors_share,
                           double damping, int64_t *docs, double *activations) {
    double shares[3] = {seeds_share, bridges_share, anchors_share};
    int64_t n = walk->n_columns, found = 0;
    double *work = malloc((size_t)(n * (n + 3) + 2 * walk->n_rows + 1) * sizeof *work);
    ranked *order = malloc((size_t)(walk->n_rows + 1) * sizeof *order);
    if (work && order) {
        double *memories = work + n * (n + 3) + walk->n_rows;
        pagerank(walk, shares, damping, work, memories);
        for (int64_t at = 0; at < walk->n_rows; at++)
            if (memories[at] > 0) order[found++] = (ranked){memories[at], walk->rows[at].doc, 0, 0};
        sort(order, found);
        for (int64_t at = 0; at < found; at++)
            docs[at] = order[at].number, activations[at] = order[at].key / order[0].key;
    } else
        found = NONE;
    free(work);
    free(order);
    return found;
}

/* Export everything collected, for explanations; `matrix` holds weights by memory and entity and must be zeroed. */
void trivet_walk_export(const trivet_walk *walk, int64_t *entities, double *strengths, int64_t *hops, int64_t *docs,
                        double *matrix) {
    for (int64_t at = 0; at < walk->n_columns; at++) {
        const column *each = walk->columns + at;
        entities[at] = each->entity, strengths[at] = each->strength, hops[at] = each->hop;
    }
    for (int64_t at = 0; at < walk->n_rows; at++) {
        docs[at] = walk->rows[at].doc;
        for (int32_t edge = walk->rows[at].ways; edge != NONE; edge = walk->ways[edge].next)
            matrix[at * walk->n_columns + walk->ways[edge].column] = weight_of(walk, walk->ways + edge);
    }
}
