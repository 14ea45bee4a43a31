/* Lookups in the graph of a namespace. The cost of each is bounded by what it may scan, whatever an entity's degree. */
#include "graph.h"

/* The edges of a key as [first, end), within the arrays even if the starts are corrupt. */
static int64_t cut(const int32_t *starts, int64_t key, int64_t n_edges, int64_t *end) {
    int64_t first = starts[key];
    *end = lesser(starts[key + 1], n_edges);
    return first >= 0 && first < *end ? first : (*end = 0);
}

TRIVET_DEFINE_FIRST_FROM(first_id_from, int64_t)

/* An entity's code, or -1. */
int64_t trivet_code_of(const trivet_segment *segment, int64_t entity) {
    int64_t place = first_id_from(segment->entities, segment->n_entities, entity);
    return place < segment->n_entities && segment->entities[place] == entity ? place : -1;
}

static int64_t place_of(const trivet_segment *segment, int64_t doc) {
    const int32_t *memories = segment->memories;
    int64_t count = segment->n_memories;
    if (!count) return -1;
    int64_t place = doc - memories[0]; /* exact if no memory is missing */
    if (place < 0 || place >= count || memories[place] != doc) place = trivet_first_from(memories, count, doc);
    return place < count && memories[place] == doc ? place : -1;
}

/* The edges of a memory with the greatest weights. */
trivet_ways trivet_ways_of(const trivet_graph *graph, int64_t doc, int64_t most) {
    trivet_ways none = {0};
    if (doc < 0 || doc >= graph->n_home || graph->home[doc] >= graph->n_segments) return none;
    const trivet_segment *segment = graph->segments + graph->home[doc];
    int64_t place = place_of(segment, doc), end;
    if (place < 0) return none;
    int64_t first = cut(segment->memory_starts, place, segment->n_edges, &end);
    end = lesser(end, first + most);
    return (trivet_ways){segment, segment->codes + first, segment->code_weights + first, end - first};
}

/* The number of memories that mention an entity, at most `cap`. */
int64_t trivet_mentions_of(const trivet_graph *graph, int64_t entity, int64_t cap) {
    int64_t count = 0;
    for (int64_t at = 0; at < graph->n_segments; at++) {
        const trivet_segment *segment = graph->segments + at;
        int64_t code = trivet_code_of(segment, entity), end;
        if (code < 0) continue;
        int64_t first = cut(segment->entity_starts, code, segment->n_edges, &end);
        count += end - first - (segment->gone ? segment->gone[code] : 0);
    }
    return lesser(count, cap);
}

/* The latest eligible memories that mention an entity, at most `most` of the `scanned` latest; returns their number.
   Removed ones do not count as scanned, or a process that followed their removal would find fewer than a new one. */
int64_t trivet_latest_of(const trivet_graph *graph, const uint8_t *eligible, int64_t n_eligible, int64_t entity,
                         int64_t scanned, int64_t most, int64_t *docs, double *weights) {
    int64_t next[TRIVET_NO_SEGMENT], ends[TRIVET_NO_SEGMENT], where[TRIVET_NO_SEGMENT];
    int64_t open = 0, found = 0;
    for (int64_t at = 0; at < lesser(graph->n_segments, TRIVET_NO_SEGMENT); at++) {
        int64_t code = trivet_code_of(graph->segments + at, entity);
        if (code < 0) continue;
        next[open] = cut(graph->segments[at].entity_starts, code, graph->segments[at].n_edges, &ends[open]);
        where[open] = at;
        open += next[open] < ends[open];
    }
    while (scanned > 0 && open && found < most) {
        int64_t latest = 0;
        for (int64_t at = 1; at < open; at++)
            if (graph->segments[where[at]].docs[next[at]] > graph->segments[where[latest]].docs[next[latest]])
                latest = at;
        const trivet_segment *segment = graph->segments + where[latest];
        int64_t doc = segment->docs[next[latest]];
        if (doc >= 0 && doc < graph->n_home && graph->home[doc] == where[latest]) {
            scanned--;
            if (doc < n_eligible && eligible[doc]) {
                docs[found] = doc;
                weights[found++] = segment->levels[segment->doc_weights[next[latest]]];
            }
        }
        if (++next[latest] == ends[latest]) {
            open--;
            next[latest] = next[open], ends[latest] = ends[open], where[latest] = where[open];
        }
    }
    return found;
}

/* `trivet_mentions_of` for several entities. */
void trivet_graph_mentions(const trivet_graph *graph, const int64_t *entities, int64_t n_entities, int64_t cap,
                           int64_t *counts) {
    for (int64_t at = 0; at < n_entities; at++) counts[at] = trivet_mentions_of(graph, entities[at], cap);
}
