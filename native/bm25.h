/* A BM25 query and a namespace, in the layouts of retrieval/legs/bm25_scoring.py, index/terms.py and
   index/columns.py. */
#include "kernels.h"

/* The contributions of a term or a period to the scores of memories. */
struct part {
    const int32_t *docs;    /* slots, ascending */
    const uint16_t *tfs;    /* term frequencies; null for a period, which adds the same to all */
    const int32_t *lengths; /* number of terms in each */
    int64_t size;
    int64_t most, shortest; /* maximum of tfs, minimum of lengths */
    double weight;          /* the term's idf, or what a period adds */
};

/* The saturation of a memory is k1 * (base + slope * length). The terms precede the period. */
struct query {
    int64_t parts;
    double k1, base, slope;
    struct part part[];
};

static inline double saturation(const struct query *query, int64_t length) {
    return query->k1 * (query->base + query->slope * (double)length);
}

/* What a part adds to the memory at an index. */
static inline double added(const struct query *query, const struct part *part, int64_t at) {
    if (!part->tfs)
        return part->weight;
    double tf = part->tfs[at];
    return part->weight * (query->k1 + 1) * tf / (tf + saturation(query, part->lengths[at]));
}

/* Columns of memories by slot; -1 means no neighbour, session or speaker. */
struct memories {
    int64_t slots;
    const int32_t *previous, *next, *lengths, *sessions, *speakers;
    const uint8_t *asks;
};

/* The best `wanted` allowed memories with scores above 0 and those tied with the last, by slot. Returns their
   number, or -1 if out of memory; the caller frees `best`. */
int64_t trivet_best(const struct query *query, const uint8_t *allowed, int64_t slots, int64_t wanted,
                    struct scored **best);

/* The index of the first memory >= doc, from index `at` on; galloping search, as it is usually near. */
static inline int64_t reached(const struct part *part, int64_t at, int64_t doc) {
    int64_t step = 1, end = part->size;
    while (at + step < end && part->docs[at + step] < doc) {
        at += step;
        step *= 2;
    }
    return at + trivet_first_from(part->docs + at, lesser(end, at + step) - at, doc);
}

/* The index of a memory within [from, to), or -1. */
static inline int64_t place(const struct part *part, int64_t from, int64_t to, int64_t doc) {
    int64_t at = from + trivet_first_from(part->docs + from, to - from, doc);
    return at < to && part->docs[at] == doc ? at : -1;
}
