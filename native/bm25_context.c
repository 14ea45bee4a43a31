/* BM25 ranking with turns of a session scored in the context of their neighbours. */
#include "bm25.h"

/* The context of a turn and its weights. */
struct context {
    int64_t near;            /* turns at this distance from a good one are scored too */
    int64_t befores, afters; /* number of turns before and after that count for a turn */
    double shares[];         /* their weights, nearest first, first those before, then those after */
};

/* Turns with their neighbours: a turn in the middle of each row, `reach` turns on each side, -1 for none. */
struct windows {
    int64_t count, reach, width, cells;
    int64_t *docs;
    uint16_t *tfs; /* term frequencies of the cells, term by term */
};

/* A memory in the windows. */
struct cell {
    int64_t doc, at;
};

/* The next visible turn in one direction, or -1. */
static int64_t beside(int64_t turn, const int32_t *links, const uint8_t *visible, int64_t slots) {
    for (int64_t steps = 0; turn >= 0 && steps < slots; steps++) { /* bounded, in case the links form a cycle */
        turn = links[turn];
        if (turn < 0 || turn >= slots)
            return -1;
        if (visible[turn])
            return turn;
    }
    return -1;
}

static void look_around(struct windows *windows, const struct memories *memories, const uint8_t *visible,
                        int64_t slots) {
    for (int64_t i = 0; i < windows->count; i++) {
        int64_t *middle = windows->docs + i * windows->width + windows->reach, before = *middle, after = *middle;
        for (int64_t distance = 1; distance <= windows->reach; distance++) {
            middle[-distance] = before = beside(before, memories->previous, visible, slots);
            middle[distance] = after = beside(after, memories->next, visible, slots);
        }
    }
}

/* Look up the terms of the windows; turns of a session are usually near each other in the postings too. */
static void look_up(struct windows *windows, const struct query *query) {
    uint16_t *tfs = windows->tfs;
    for (const struct part *part = query->part; part < query->part + query->parts; part++)
        for (const int64_t *row = windows->docs; row < windows->docs + windows->cells; row += windows->width) {
            int64_t least = INT64_MAX, most = -1;
            for (int64_t i = 0; i < windows->width; i++) {
                least = row[i] >= 0 && row[i] < least ? row[i] : least;
                most = row[i] > most ? row[i] : most;
            }
            int64_t from = part->tfs ? trivet_first_from(part->docs, part->size, least) : part->size;
            int64_t to = reached(part, from, most + 1);
            for (int64_t i = 0; i < windows->width; i++) {
                int64_t at = from < to && row[i] >= 0 ? place(part, from, to, row[i]) : -1;
                *tfs++ = at < 0 ? 0 : part->tfs[at];
            }
        }
}

/* For cells and scores, which both begin with the memory. */
static int by_doc(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

TRIVET_DEFINE_SORT(sort, struct scored, trivet_is_better)

/* The distinct memories within `near` of the middle of the windows, ascending; returns their number. */
static int64_t near_the_middle(const struct windows *windows, int64_t near, struct cell *cells) {
    int64_t held = 0, kept = 0, is_sorted = 1;
    for (int64_t i = 0; i < windows->count; i++)
        for (int64_t distance = -near; distance <= near; distance++) {
            int64_t at = i * windows->width + windows->reach + distance, doc = windows->docs[at];
            if (doc < 0)
                continue;
            is_sorted &= !held || cells[held - 1].doc <= doc; /* usual, as windows are in the order of their turns */
            cells[held++] = (struct cell){doc, at};
        }
    if (!is_sorted)
        qsort(cells, held, sizeof *cells, by_doc);
    for (int64_t i = 0; i < held; i++)
        if (!i || cells[i].doc != cells[i - 1].doc)
            cells[kept++] = cells[i];
    return kept;
}

/* The score of a memory in the windows; term frequencies of its neighbours are added before saturation. */
static double in_context(const struct query *query, const struct windows *windows, const struct context *context,
                         const struct cell *cell, int64_t length) {
    double score = 0, saturated = saturation(query, length);
    const uint16_t *own = windows->tfs + cell->at;
    for (const struct part *part = query->part; part < query->part + query->parts; part++, own += windows->cells) {
        double tf = own[0];
        if (!part->tfs) {
            score += place(part, 0, part->size, cell->doc) < 0 ? 0 : part->weight;
            continue;
        }
        for (int64_t distance = 1; distance <= context->befores; distance++)
            tf += context->shares[distance - 1] * own[-distance];
        for (int64_t distance = 1; distance <= context->afters; distance++)
            tf += context->shares[context->befores + distance - 1] * own[distance];
        if (tf > 0) /* both may be 0 where k1 is */
            score += part->weight * (tf * (query->k1 + 1) / (tf + saturated));
    }
    return score;
}

/* Whether a memory is a turn of a session, or a chunk with a neighbour in its document. */
static int is_turn(const struct memories *memories, int64_t doc) {
    return memories->sessions[doc] >= 0 || memories->previous[doc] >= 0 || memories->next[doc] >= 0;
}

/* The eligible turns among some memories and near them with a positive score in context, ascending. Returns their
   number, at most 2 * near + 1 for each memory, or -1 if out of memory. */
static int64_t turns_in_context(const struct query *query, const struct memories *memories, const uint8_t *visible,
                                const uint8_t *eligible, int64_t slots, const struct context *context,
                                const struct scored *first, int64_t count, struct scored *turns) {
    int64_t given = -1, more = context->befores > context->afters ? context->befores : context->afters;
    struct windows windows = {.reach = context->near + more, .width = 2 * (context->near + more) + 1};
    windows.docs = malloc((count * windows.width + 1) * sizeof *windows.docs);
    for (int64_t i = 0; windows.docs && i < count; i++)
        if (is_turn(memories, first[i].number))
            windows.docs[windows.count++ * windows.width + windows.reach] = first[i].number;
    windows.cells = windows.count * windows.width;
    windows.tfs = malloc((query->parts * windows.cells + 1) * sizeof *windows.tfs);
    struct cell *cells = malloc((windows.count * (2 * context->near + 1) + 1) * sizeof *cells);
    if (windows.docs && windows.tfs && cells) {
        look_around(&windows, memories, visible, slots);
        look_up(&windows, query);
        int64_t held = near_the_middle(&windows, context->near, cells);
        given = 0;
        for (int64_t i = 0; i < held; i++)
            if (eligible[cells[i].doc]) {
                struct scored turn = {cells[i].doc, 0};
                turn.score = in_context(query, &windows, context, &cells[i], memories->lengths[turn.number]);
                if (turn.score > 0)
                    turns[given++] = turn;
            }
    }
    free(windows.docs);
    free(windows.tfs);
    free(cells);
    return given;
}

/* The best eligible memories, including turns near the best visible ones, with scores in context; best first, ties by
   slot: the best `wanted` and those tied with the last. `boost` is the factor for memories of the `named` speakers,
   given by code, `asking` for turns that ask. `context` is NULL for none. `out` receives `capacity` slots and as many
   scores. Returns the number of memories, including those beyond the capacity, or -1 if out of memory. */
int64_t trivet_bm25_ranked(const struct query *query, const struct memories *memories, const uint8_t *visible,
                           const uint8_t *eligible, int64_t slots, int64_t wanted, const struct context *context,
                           double asking, int64_t named, const int32_t *speakers, double boost, int64_t capacity,
                           void *out) {
    struct scored *found, *seen = NULL, *all = NULL;
    int64_t *docs = out, count = -1;
    double *scores = (double *)out + capacity;
    slots = lesser(slots, memories->slots);
    int64_t of_found = trivet_best(query, eligible, slots, wanted, &found), of_turns = 0;
    int64_t of_seen = context ? of_found : 0, of_each = context ? 2 * context->near + 1 : 0;
    if (context && visible != eligible)
        of_seen = trivet_best(query, visible, slots, wanted, &seen);
    if (of_seen > 2 * wanted) { /* many are tied */
        sort(seen ? seen : found, of_seen);
        of_seen = 2 * wanted;
    }
    if (of_found >= 0 && of_seen >= 0)
        all = malloc((of_found + of_seen * of_each + 1) * sizeof *all);
    if (all && context)
        of_turns = turns_in_context(query, memories, visible, eligible, slots, context, seen ? seen : found,
                                    of_seen, all);
    if (all && of_turns >= 0) {
        count = of_turns;
        for (int64_t i = 0; i < of_found; i++)
            if (!of_turns || !bsearch(&found[i].number, all, of_turns, sizeof *all, by_doc))
                all[count++] = found[i];
        for (struct scored *each = all; each < all + count; each++) {
            double prior = 1;
            for (int64_t i = 0; i < named; i++)
                if (memories->speakers[each->number] == speakers[i])
                    prior = boost;
            int is_asking = memories->asks[each->number] && memories->sessions[each->number] >= 0;
            each->score *= is_asking ? prior * asking : prior;
        }
        sort(all, count);
        int64_t best = lesser(count, wanted);
        while (best && best < count && all[best].score == all[best - 1].score)
            best++;
        count = best;
        for (int64_t i = 0; i < count && i < capacity; i++) {
            docs[i] = all[i].number;
            scores[i] = all[i].score;
        }
    }
    free(found);
    free(seen);
    free(all);
    return count;
}
