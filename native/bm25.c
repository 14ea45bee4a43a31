/* BM25 top-k search, and the coverage of a query by given memories. */
#include "bm25.h"

/* Slots whose sums are kept at a time; they fit the L1 cache. */
#define WINDOW 4096
#define WORDS (WINDOW / 64)

/* Upper bound of the ratio of two sums of the same numbers in different orders. */
#define ROUNDING (1 + 1e-9)

/* A lookup costs as much as adding this number of postings. */
#define LOOK_UP 4

struct list {
    const struct part *part;
    int64_t at;      /* index of the first posting not yet passed */
    double bound;    /* upper bound of what the list adds to a score */
    double below;    /* upper bound of what it and the lists of lower bounds add together */
    int is_optional; /* a memory found only in such lists cannot be among the best */
};

struct search {
    const struct query *query;
    const uint8_t *allowed;
    int64_t slots;
    struct list *lists;   /* in the order of the parts */
    struct list **bounds; /* by bound, ascending */
    int64_t optional;     /* number of lists, by ascending bound, that are optional */
    struct scored *heap;  /* the best so far */
    int64_t held, wanted;
    double least; /* score required to be among the best */
    struct scored *found;
    int64_t count, room;
};

static int by_bound(const void *one, const void *other) {
    double a = (*(struct list *const *)one)->bound, b = (*(struct list *const *)other)->bound;
    return (a > b) - (a < b);
}

static int may_win(const struct search *search, double most) { return most * ROUNDING >= search->least; }

/* Add a memory to the heap. */
static void heap_push(struct search *search, struct scored found) {
    search->held = trivet_keep(search->heap, search->held, search->wanted, found);
    if (search->held == search->wanted)
        search->least = search->heap[0].score;
}

/* Keep the memories found with at least this score. */
static void keep_from(struct search *search, double least) {
    int64_t kept = 0;
    for (int64_t i = 0; i < search->count; i++)
        if (search->found[i].score >= least)
            search->found[kept++] = search->found[i];
    search->count = kept;
}

/* Add a memory, with its score from the optional lists, if it can be among the best; 0 if out of memory. */
static int consider(struct search *search, int64_t doc, double score) {
    if (!(score > 0) || doc < 0 || doc >= search->slots || !search->allowed[doc])
        return 1;
    for (int64_t i = search->optional; i--;) {
        struct list *list = search->bounds[i];
        if (!may_win(search, score + list->below))
            return 1;
        list->at = reached(list->part, list->at, doc);
        if (list->at < list->part->size && list->part->docs[list->at] == doc)
            score += added(search->query, list->part, list->at);
    }
    if (!may_win(search, score))
        return 1;
    if (search->count == search->room) {
        keep_from(search, search->least / ROUNDING);
        if (search->count > search->room / 2) {
            struct scored *more = realloc(search->found, 2 * search->room * sizeof *more);
            if (!more)
                return 0;
            search->found = more;
            search->room *= 2;
        }
    }
    struct scored found = {doc, score};
    search->found[search->count++] = found;
    heap_push(search, found);
    return 1;
}

/* Make lists optional that cannot by themselves lift a memory among the best, if long enough for lookups to pay off. */
static void mark_optional(struct search *search) {
    int64_t left = 0, parts = search->query->parts;
    for (int64_t i = search->optional; i < parts; i++)
        left += search->bounds[i]->part->size - search->bounds[i]->at;
    for (; search->optional < parts && !may_win(search, search->bounds[search->optional]->below); search->optional++) {
        struct list *list = search->bounds[search->optional];
        int64_t own = list->part->size - list->at;
        left -= own;
        if (own < LOOK_UP * left)
            return;
        list->is_optional = 1;
    }
}

/* The next slot in the lists that are not optional; INT64_MAX at their ends. */
static int64_t next_doc(const struct search *search) {
    int64_t first = INT64_MAX;
    for (const struct list *list = search->lists; list < search->lists + search->query->parts; list++)
        if (!list->is_optional && list->at < list->part->size && list->part->docs[list->at] < first)
            first = list->part->docs[list->at];
    return first;
}

/* Add a list's postings in the window to the sums, and new memories to `met`; returns the length of `met`. */
static int64_t add_up(const struct query *query, struct list *list, int64_t first, double *restrict sums,
                      uint16_t *restrict met, int64_t count) {
    const struct query about = *query; /* copies stay in registers */
    const struct part part = *list->part;
    int64_t at = list->at;
    for (; at < part.size && part.docs[at] < first + WINDOW; at++) {
        int64_t offset = part.docs[at] - first;
        if (offset < 0) /* not ascending */
            continue;
        met[count] = (uint16_t)offset;
        count += (sums[offset] == 0) & (count < WINDOW);
        sums[offset] += added(&about, &part, at);
    }
    list->at = at;
    return count;
}

/* Sum up the lists that are not optional, window by window; 0 if out of memory. Branch mispredictions cost more than
   the arithmetic: memories are collected without branches, and only those that can be among the best are put in order,
   looked up in the optional lists and checked against the mask. */
static int collect(struct search *search) {
    double sums[WINDOW] = {0};
    uint16_t met[WINDOW + 1];
    uint64_t hope[WORDS] = {0};
    for (int64_t first; (first = next_doc(search)) < INT64_MAX;) {
        int64_t count = 0;
        for (struct list *list = search->lists; list < search->lists + search->query->parts; list++)
            if (!list->is_optional)
                count = add_up(search->query, list, first, sums, met, count);
        double least = search->least;
        double more = search->optional ? search->bounds[search->optional - 1]->below : 0; /* from the optional lists */
        for (int64_t i = 0; i < count; i++) {
            double sum = sums[met[i]];
            if ((sum + more) * ROUNDING >= least)
                hope[met[i] / 64] |= UINT64_C(1) << met[i] % 64;
            else
                sums[met[i]] = 0;
        }
        for (int word = 0; word < WORDS; word++)
            for (; hope[word]; hope[word] &= hope[word] - 1) {
                int offset = 64 * word + __builtin_ctzll(hope[word]);
                double sum = sums[offset];
                sums[offset] = 0;
                if (!consider(search, first + offset, sum))
                    return 0;
            }
        mark_optional(search);
    }
    return 1;
}

/* Recompute the scores by summing in the order of the parts, so that ties are exact. */
static void add_up_in_order(struct search *search) {
    for (struct scored *found = search->found; found < search->found + search->count; found++) {
        found->score = 0;
        for (const struct list *list = search->lists; list < search->lists + search->query->parts; list++) {
            int64_t at = place(list->part, 0, list->part->size, found->number);
            if (at >= 0)
                found->score += added(search->query, list->part, at);
        }
    }
}

/* Keep the best `wanted` and those tied with the last one. */
static void cut(struct search *search) {
    keep_from(search, search->least / ROUNDING);
    if (search->optional)
        add_up_in_order(search);
    search->held = 0;
    search->least = 0;
    for (int64_t i = 0; i < search->count; i++)
        heap_push(search, search->found[i]);
    keep_from(search, search->least);
}

static int prepare(struct search *search) {
    int64_t parts = search->query->parts, postings = 0;
    double below = 0;
    search->lists = malloc(parts * sizeof *search->lists);
    search->bounds = malloc(parts * sizeof *search->bounds);
    search->found = malloc(search->room * sizeof *search->found);
    if (!search->lists || !search->bounds || !search->found)
        return 0;
    for (int64_t i = 0; i < parts; i++) {
        const struct part *part = &search->query->part[i];
        double most = (double)part->most, bound = part->weight;
        if (part->tfs)
            bound *= (search->query->k1 + 1) * most / (most + saturation(search->query, part->shortest));
        search->lists[i] = (struct list){.part = part, .bound = bound};
        search->bounds[i] = &search->lists[i];
        postings += part->size;
    }
    qsort(search->bounds, parts, sizeof *search->bounds, by_bound);
    for (int64_t i = 0; i < parts; i++)
        search->bounds[i]->below = below += search->bounds[i]->bound;
    if (search->wanted > postings)
        search->wanted = postings + 1; /* never reached */
    search->heap = malloc(search->wanted * sizeof *search->heap);
    return search->heap != NULL;
}

int64_t trivet_best(const struct query *query, const uint8_t *allowed, int64_t slots, int64_t wanted,
                    struct scored **best) {
    struct search search = {.query = query, .allowed = allowed, .slots = slots, .wanted = wanted, .room = 256};
    int64_t count = -1;
    *best = NULL;
    if (wanted < 1 || query->parts < 1)
        return 0;
    if (prepare(&search) && collect(&search)) {
        cut(&search);
        count = search.count;
        *best = search.found;
        search.found = NULL;
    }
    free(search.lists);
    free(search.bounds);
    free(search.heap);
    free(search.found);
    return count;
}

/* For some memories, the shares of the query's idf they contain, then of its terms, then the greatest idf contained
   relative to the query's greatest. `attainable` and `terms` are totals over all terms, including those in no
   memory. */
void trivet_bm25_coverage(const struct query *query, double attainable, double terms, const int64_t *docs,
                          int64_t count, float *shares) {
    double greatest = 0;
    for (const struct part *part = query->part; part < query->part + query->parts; part++)
        if (part->tfs && part->weight > greatest)
            greatest = part->weight;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0, there = 0, most = 0;
        for (const struct part *part = query->part; part < query->part + query->parts; part++) {
            if (!part->tfs || place(part, 0, part->size, docs[i]) < 0)
                continue;
            sum += part->weight;
            there += 1;
            most = part->weight > most ? part->weight : most;
        }
        shares[i] = (float)(sum * (query->k1 + 1) / attainable);
        shares[count + i] = (float)(there / terms);
        shares[2 * count + i] = (float)(most / greatest);
    }
}
