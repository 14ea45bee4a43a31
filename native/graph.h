/* The edges between entities and memories in the layout of `graph/segments.py`, and lookups in them. */
#include "kernels.h"

enum { TRIVET_NO_SEGMENT = 255 };

/* The edges in two orders: by entity with the latest memory first, and by memory with the greatest weight first. A
   weight is an index into 256 levels. */
typedef struct {
    const int64_t *entities; /* ids, ascending; an entity's code is its index */
    const int32_t *entity_starts;
    const int32_t *docs;
    const uint8_t *doc_weights;
    const int32_t *memories; /* slots, ascending */
    const int32_t *memory_starts;
    const int32_t *codes;
    const uint8_t *code_weights;
    const double *levels;
    const int32_t *gone; /* removed memories, by code; NULL if there are none */
    int64_t n_entities, n_memories, n_edges;
} trivet_segment;

/* A memory's edges count only in the segment that is its home. */
typedef struct {
    const uint8_t *home; /* by slot; TRIVET_NO_SEGMENT if in none */
    int64_t n_home, n_segments;
    trivet_segment segments[];
} trivet_graph;

/* The edges of one memory: weights are levels[weights[i]]. */
typedef struct {
    const trivet_segment *segment;
    const int32_t *codes;
    const uint8_t *weights;
    int64_t count;
} trivet_ways;

/* The entity of an edge; 0 if its code is invalid. */
static inline int trivet_entity_at(const trivet_ways *ways, int64_t edge, int64_t *entity) {
    int64_t code = ways->codes[edge];
    if (code < 0 || code >= ways->segment->n_entities) return 0;
    *entity = ways->segment->entities[code];
    return 1;
}

int64_t trivet_code_of(const trivet_segment *segment, int64_t entity);
trivet_ways trivet_ways_of(const trivet_graph *graph, int64_t doc, int64_t most);
int64_t trivet_mentions_of(const trivet_graph *graph, int64_t entity, int64_t cap);
int64_t trivet_latest_of(const trivet_graph *graph, const uint8_t *eligible, int64_t n_eligible, int64_t entity,
                         int64_t scanned, int64_t most, int64_t *docs, double *weights);
