/* Finds texts that may be near-duplicates of others. */
#include "kernels.h"

#define BETWEEN_TEXTS 0xff /* does not occur in UTF-8 */

typedef struct {
    uint64_t key;
    int64_t text;
} Sign;

static int is_before(const Sign *one, const Sign *other) { return one->key < other->key; }

TRIVET_DEFINE_SORT(sort, Sign, is_before)

/* A bijection that mixes all bits: the finaliser of MurmurHash3. */
static uint64_t spread(uint64_t value) {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ (value >> 33);
}

/* By byte: its lower case if part of a word, or 0 if between words (ASCII punctuation, separators and controls, except
   the signs that words may contain). */
static void fill_letters(uint8_t *letters) {
    static const char signs[] = "'#%@&$+<=>^`|~";
    memset(letters, 0, 256);
    for (int byte = 0x80; byte < BETWEEN_TEXTS; byte++) letters[byte] = (uint8_t)byte;
    for (uint8_t byte = '0'; byte <= '9'; byte++) letters[byte] = byte;
    for (uint8_t byte = 'a'; byte <= 'z'; byte++) letters[byte] = letters[byte - 'a' + 'A'] = byte;
    for (const char *sign = signs; *sign; sign++) letters[(uint8_t)*sign] = (uint8_t)*sign;
}

/* Hash each word from `at` to the end of its text; returns their number. */
static int64_t words_of(const uint8_t *bytes, int64_t *at, int64_t size, const uint8_t *letters, uint64_t *words) {
    int64_t count = 0, i = *at;
    while (i < size && bytes[i] != BETWEEN_TEXTS) {
        uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */
        int64_t first = i;
        for (; i < size && letters[bytes[i]]; i++) hash = (hash ^ letters[bytes[i]]) * 0x100000001b3ULL;
        if (i > first)
            words[count++] = spread(hash);
        else
            i++;
    }
    *at = i + 1;
    return count;
}

/* Move the distinct signs to the front, sorted by key; returns their number. */
static int64_t distinct(Sign *signs, int64_t count) {
    int64_t kept = 0;
    sort(signs, count);
    for (int64_t i = 0; i < count; i++)
        if (!kept || signs[kept - 1].key != signs[i].key) signs[kept++] = signs[i];
    return kept;
}

/* Mark texts with the same words as another, or whose three-word shingles may have a Jaccard similarity >= `threshold`
   with those of another.

   Two such sets share one of their first (1 - threshold) * size + 1 members in any common order: the prefix filter of
   Chaudhuri, Ganti and Kaushik (ICDE 2006). Here shingles are ordered by hash.

   texts: `count` texts in UTF-8, separated by a byte 0xff.
   fewest, most: number of words of texts with shingles.
   marks: out, 1 or 0 per text.
   Returns the number of marked texts, -1 if out of memory, -2 if `texts` does not contain `count` texts. */
int64_t trivet_alike(const uint8_t *texts, int64_t size, int64_t count, int64_t fewest, int64_t most, double threshold,
                     uint8_t *marks) {
    uint8_t letters[256];
    int64_t longest = size / 2 + 1, signs = 0, room = count + size / 2 + 1, at = 0, marked = 0;
    uint64_t *words = malloc((size_t)longest * sizeof *words);
    Sign *found = malloc((size_t)room * sizeof *found);
    if (!words || !found) {
        free(words);
        free(found);
        return -1;
    }
    fill_letters(letters);
    memset(marks, 0, (size_t)count);
    int64_t text = 0;
    for (; text < count && at <= size; text++) {
        int64_t length = words_of(texts, &at, size, letters, words);
        uint64_t all = (uint64_t)length;
        for (int64_t i = 0; i < length; i++) all = spread(all) + words[i];
        found[signs++] = (Sign){spread(all), text};
        if (length < fewest || length > most || length < 3) continue;
        for (int64_t i = 0; i + 2 < length; i++)
            found[signs + i] = (Sign){spread(spread(words[i] * 3 + words[i + 1]) + words[i + 2]), text};
        int64_t shingles = distinct(found + signs, length - 2);
        int64_t prefix = shingles - (int64_t)ceil(threshold * (double)shingles - 1e-9) + 1;
        signs += prefix < shingles ? prefix : shingles;
    }
    if (text < count || at <= size) {
        marked = -2;
    } else {
        sort(found, signs);
        for (int64_t i = 1; i < signs; i++)
            if (found[i].key == found[i - 1].key && found[i].text != found[i - 1].text)
                marks[found[i].text] = marks[found[i - 1].text] = 1;
        for (int64_t i = 0; i < count; i++) marked += marks[i];
    }
    free(words);
    free(found);
    return marked;
}
