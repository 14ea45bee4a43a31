/* Features of a query's candidates, and the models that score them. */
#include "kernels.h"

/* Dot products of some rows of a matrix with a vector. */
void trivet_cosines(int64_t n, const float *rows, const int64_t *at, int64_t dimensions, const float *vector,
                    float *products) {
    for (int64_t row = 0; row < n; row++)
        products[row] = trivet_dot(rows + (at ? at[row] : row) * dimensions, vector, dimensions);
}

/* Unpack the traits of n memories, `values` numbers each, and the log(1 + words) stored above them. */
void trivet_unpack_traits(int64_t n, const int32_t *packed, int64_t values, const int32_t *shifts, const int32_t *masks,
                          const float *scales, int32_t words_shift, float *traits, float *words) {
    for (int64_t row = 0; row < n; row++) {
        for (int64_t value = 0; value < values; value++)
            traits[row * values + value] = (float)(packed[row] >> shifts[value] & masks[value]) * scales[value];
        words[row] = log1pf((float)(packed[row] >> words_shift));
    }
}

/* The features specific to a candidate, in the order of `CANDIDATE_FEATURES`. */
enum own {
    PLACE_VECTOR, PLACE_BM25, PLACE_GRAPH, CONSENSUS,
    COSINE, COSINE_BELOW, COSINE_DEVIATIONS, OWN_COSINE, OWN_BELOW, OWN_DEVIATIONS,
    BM25, BM25_ATTAINED, GRAPH,
    COVERED, COVERED_OF_BEST, SHARED, RAREST,
    LIKE_FIRST, LIKE_FEW, SESSION,
    NAMED, SPEAKER_SHARE, ASSISTANT, TITLED, LENGTH,
    OWN_FEATURES
};

enum { LEGS = 3, FEW = 5, SMOOTHING = 6 };

static const double SHARES[LEGS] = {0.4, 0.3, 0.3};

/* The inputs per candidate, one array after another. */
struct floats { const float *mixed, *own, *covered, *shared, *rarest, *titled, *words; };
struct codes { const int32_t *speakers, *sessions, *assistant, *named, *has_title; };

struct standing {
    double consensus, places[LEGS];
    int64_t candidate;
};

/* Best first by consensus, ties by the legs in turn. */
static int is_better(const struct standing *one, const struct standing *other) {
    if (one->consensus != other->consensus) return one->consensus > other->consensus;
    for (int leg = 0; leg < LEGS; leg++)
        if (one->places[leg] != other->places[leg]) return one->places[leg] > other->places[leg];
    return one->candidate < other->candidate;
}

static int is_less(const float *one, const float *other) { return *one < *other; }

TRIVET_DEFINE_SORT(sort, struct standing, is_better)
TRIVET_DEFINE_SORT(sort_numbers, float, is_less)

/* Values, their difference to the best, and their z-scores. */
static void spread(int64_t n, const float *values, int64_t width, float *rows) {
    double sum = 0, squares = 0;
    float most = values[0];
    for (int64_t row = 0; row < n; row++) {
        sum += values[row];
        if (values[row] > most) most = values[row];
    }
    float mean = (float)(sum / (double)n);
    for (int64_t row = 0; row < n; row++) {
        float centred = values[row] - mean;
        squares += (double)centred * centred;
    }
    float deviation = sqrtf((float)(squares / (double)n)) + 1e-6f;
    for (int64_t row = 0; row < n; row++) {
        float *place = rows + row * width;
        place[0] = values[row];
        place[1] = values[row] - most;
        place[2] = (values[row] - mean) / deviation;
    }
}

static double or_one(double value) { return value != 0 ? value : 1.0; }

/* Reciprocal ranks and scores of each candidate in the legs. */
static void ranks(int64_t n, const int64_t *found, const int32_t *at, const double *scores, double attainable,
                  struct standing *order, double *bm25, double *graph, int64_t width, float *rows) {
    for (int leg = 0; leg < LEGS; leg++) {
        for (int64_t rank = 0; rank < found[leg]; rank++, at++, scores++) {
            if (*at < 0 || *at >= n) continue;
            order[*at].places[leg] = 1.0 / (double)(SMOOTHING + rank);
            if (leg == 1) bm25[*at] = *scores;
            if (leg == 2) graph[*at] = *scores;
        }
    }
    double most = 0, most_bm25 = bm25[0], most_graph = graph[0];
    for (int64_t row = 0; row < n; row++) {
        const double *places = order[row].places;
        order[row].candidate = row;
        order[row].consensus = SHARES[0] * places[0] + SHARES[1] * places[1] + SHARES[2] * places[2];
        if (order[row].consensus > most) most = order[row].consensus;
        if (bm25[row] > most_bm25) most_bm25 = bm25[row];
        if (graph[row] > most_graph) most_graph = graph[row];
    }
    for (int64_t row = 0; row < n; row++) {
        float *features = rows + row * width;
        for (int leg = 0; leg < LEGS; leg++) features[PLACE_VECTOR + leg] = (float)order[row].places[leg];
        features[CONSENSUS] = (float)(order[row].consensus / or_one(most));
        features[BM25] = (float)(bm25[row] / or_one(most_bm25));
        features[BM25_ATTAINED] = (float)(bm25[row] / or_one(attainable));
        features[GRAPH] = (float)(graph[row] / or_one(most_graph));
    }
}

/* Similarity of each candidate to the first one by consensus, and the mean similarity to the first few. */
static void likeness(int64_t n, const float *vectors, const int64_t *places, int64_t dimensions,
                     const struct standing *order, int64_t width, float *rows) {
    int64_t few = n < FEW ? n : FEW;
    for (int64_t row = 0; row < n; row++) {
        float first = 0, sum = 0;
        for (int64_t place = 0; vectors && place < few; place++) {
            int64_t one = places ? places[row] : row, other = order[place].candidate;
            other = places ? places[other] : other;
            float like = trivet_dot(vectors + one * dimensions, vectors + other * dimensions, dimensions);
            if (!place) first = like;
            sum += like;
        }
        rows[row * width + LIKE_FIRST] = first;
        rows[row * width + LIKE_FEW] = sum / (float)few;
    }
}

/* For each candidate the sum of the weights of all candidates with its code, always in the same order. */
static void sum_alike(int64_t n, const int32_t *codes, const double *weights, double *restrict sums) {
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t other = 0; other < n; other++) {
        int32_t code = codes[other];
        double weight = weights[other];
        for (int64_t row = 0; row < n; row++) sums[row] += codes[row] == code ? weight : 0;
    }
}

/* The share of candidates by the same speaker, and the share of consensus of the other candidates of the session;
   `work` has room for 2 n numbers. */
static void company(int64_t n, struct codes codes, const struct standing *by_row, double *work, int64_t width,
                    float *rows) {
    double whole = 0, *weights = work, *sums = work + n;
    for (int64_t row = 0; row < n; row++) weights[row] = 1;
    sum_alike(n, codes.speakers, weights, sums);
    for (int64_t row = 0; row < n; row++) {
        rows[row * width + SPEAKER_SHARE] = (float)(codes.speakers[row] < 0 ? 1.0 : sums[row] / (double)n);
        whole += weights[row] = by_row[row].consensus;
    }
    sum_alike(n, codes.sessions, weights, sums);
    for (int64_t row = 0; row < n; row++) {
        double others = codes.sessions[row] < 0 ? 0.0 : sums[row] - weights[row];
        rows[row * width + SESSION] = (float)(others / or_one(whole));
    }
}

/* Features of each candidate on its own. */
static void alone(int64_t n, struct floats known, struct codes codes, float *ordered, const float *traits,
                  int64_t trait_count, int64_t width, float *rows) {
    float most_covered = known.covered[0];
    for (int64_t row = 1; row < n; row++)
        if (known.covered[row] > most_covered) most_covered = known.covered[row];
    if (most_covered == 0) most_covered = 1;
    memcpy(ordered, known.words, (size_t)n * sizeof *ordered);
    sort_numbers(ordered, n);
    float median = (ordered[(n - 1) / 2] + ordered[n / 2]) / 2;
    for (int64_t row = 0; row < n; row++) {
        float *features = rows + row * width;
        features[COVERED] = known.covered[row];
        features[COVERED_OF_BEST] = known.covered[row] / most_covered;
        features[SHARED] = known.shared[row];
        features[RAREST] = known.rarest[row];
        features[NAMED] = (float)codes.named[row];
        features[ASSISTANT] = (float)codes.assistant[row];
        features[TITLED] = known.titled[row];
        features[LENGTH] = known.words[row] - median;
        memcpy(features + OWN_FEATURES, traits + row * trait_count, (size_t)trait_count * sizeof *traits);
    }
}

/* The mean of a column of features. */
static float mean_of(int64_t n, const float *rows, int64_t width, int64_t column) {
    double sum = 0;
    for (int64_t row = 0; row < n; row++) sum += rows[row * width + column];
    return (float)(sum / (double)n);
}

/* The kind of memories, in the order of `CORPUS_FEATURES`. */
static void kind_of(int64_t n, struct floats known, struct codes codes, int64_t trait_count, int64_t width,
                    const float *rows, float *kind) {
    static const int MEANS[] = {NAMED, SPEAKER_SHARE, ASSISTANT, TITLED};
    double words = 0, squares = 0, titles = 0, sessions = 0;
    for (int64_t trait = 0; trait < trait_count; trait++) *kind++ = mean_of(n, rows, width, OWN_FEATURES + trait);
    for (int mean = 0; mean < 4; mean++) *kind++ = mean_of(n, rows, width, MEANS[mean]);
    for (int64_t row = 0; row < n; row++) {
        words += known.words[row];
        titles += codes.has_title[row];
        sessions += codes.sessions[row] >= 0;
    }
    words /= (double)n;
    for (int64_t row = 0; row < n; row++) squares += (known.words[row] - words) * (known.words[row] - words);
    *kind++ = (float)words;
    *kind++ = (float)sqrt(squares / (double)n);
    *kind++ = (float)(titles / (double)n);
    *kind = (float)(sessions / (double)n);
}

/* Compute the features of the n candidates of a query, n >= 1; returns 0, or -1 if out of memory.

   by_vector, by_bm25, by_graph: number of hits of each leg. at: the candidate of each hit, n if none, leg after leg,
   best first. scores: those of the legs. given_floats, given_codes: see the structs, shape (7, n) and (5, n). vectors:
   rows of `dimensions` numbers, or NULL; places: the row of each candidate, NULL for its number. traits: shape
   (n, trait_count). query: features shared by all candidates. rows: shape (n, OWN_FEATURES + trait_count +
   query_count); kind: trait_count + 8; order: n, best first. */
int32_t trivet_describe(int64_t n, int64_t by_vector, int64_t by_bm25, int64_t by_graph, const int32_t *at,
                        const double *scores, double attainable, const float *given_floats, const int32_t *given_codes,
                        const float *vectors, const int64_t *places, int64_t dimensions, const float *traits,
                        int64_t trait_count, const float *query, int64_t query_count, float *rows, float *kind,
                        int64_t *order) {
    const int64_t found[LEGS] = {by_vector, by_bm25, by_graph};
    int64_t width = OWN_FEATURES + trait_count + query_count;
    struct standing *standings = calloc((size_t)n, 2 * sizeof *standings);
    double *numbers = calloc((size_t)n, 2 * sizeof *numbers);
    float *ordered = malloc((size_t)n * sizeof *ordered);
    int32_t failed = -!(standings && numbers && ordered);
    if (!failed) {
        struct standing *by_row = standings, *best = standings + n;
        struct floats known = {given_floats, given_floats + n, given_floats + 2 * n, given_floats + 3 * n,
                               given_floats + 4 * n, given_floats + 5 * n, given_floats + 6 * n};
        struct codes codes = {given_codes, given_codes + n, given_codes + 2 * n, given_codes + 3 * n,
                              given_codes + 4 * n};
        ranks(n, found, at, scores, attainable, by_row, numbers, numbers + n, width, rows);
        memcpy(best, by_row, (size_t)n * sizeof *best);
        sort(best, n);
        for (int64_t place = 0; place < n; place++) order[place] = best[place].candidate;
        spread(n, known.mixed, width, rows + COSINE);
        spread(n, known.own, width, rows + OWN_COSINE);
        alone(n, known, codes, ordered, traits, trait_count, width, rows);
        likeness(n, vectors, places, dimensions, best, width, rows);
        company(n, codes, by_row, numbers, width, rows);
        kind_of(n, known, codes, trait_count, width, rows, kind);
        for (int64_t row = 0; row < n; row++)
            memcpy(rows + row * width + OWN_FEATURES + trait_count, query, (size_t)query_count * sizeof *query);
    }
    free(standings);
    free(numbers);
    free(ordered);
    return failed;
}

enum { LANES = 4, BLOCKS = 12, TOGETHER = BLOCKS * LANES, MOST_LEAVES = 32 };

/* The compilers' vector types: for plain loops over arrays gcc's code takes six times as long as clang's. */
typedef float Floats __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef uint32_t Masks __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* Score rows with boosted trees; returns 0, or -1 if out of memory.

   Each condition of a tree is evaluated for many rows at once, without branches: a false one excludes the leaves on its
   true side, and a row's leaf is the first that remains (QuickScorer: Lucchese et al., SIGIR 2015,
   doi:10.1145/2766462.2767733).

   chosen: n row indices. rows: of `features` numbers each. first: the first condition of each tree, and the end of the
   last tree. A condition is feature <= threshold; keep: the leaves that remain if it is false. leaves: MOST_LEAVES
   values per tree, those of a condition's true side first. */
int32_t trivet_trees(int64_t n, const int64_t *chosen, const float *rows, int64_t features, int64_t trees,
                     const int64_t *first, const int32_t *feature, const float *threshold, const uint32_t *keep,
                     const float *leaves, float *scores) {
    float *columns = malloc((size_t)features * TOGETHER * sizeof *columns);
    if (!columns) return -1;
    for (int64_t start = 0; start < n; start += TOGETHER) {
        int64_t count = n - start < TOGETHER ? n - start : TOGETHER;
        float sums[TOGETHER] = {0};
        for (int64_t place = 0; place < TOGETHER; place++) {
            const float *row = rows + chosen[place < count ? start + place : start] * features;
            for (int64_t column = 0; column < features; column++) columns[column * TOGETHER + place] = row[column];
        }
        for (int64_t tree = 0; tree < trees; tree++, leaves += MOST_LEAVES) {
            Masks left[BLOCKS];
            for (int block = 0; block < BLOCKS; block++) left[block] = ~(Masks){0};
            for (int64_t at = first[tree]; at < first[tree + 1]; at++) {
                const Floats *column = (const Floats *)(columns + feature[at] * TOGETHER);
                for (int block = 0; block < BLOCKS; block++)
                    left[block] &= keep[at] | (Masks)(column[block] <= threshold[at]);
            }
            for (int place = 0; place < TOGETHER; place++) {
                uint32_t leaf = left[place / LANES][place % LANES];
                sums[place] += leaves[leaf ? __builtin_ctz(leaf) : 0];
            }
        }
        leaves -= trees * MOST_LEAVES;
        memcpy(scores + start, sums, (size_t)count * sizeof *sums);
    }
    free(columns);
    return 0;
}
