/* Which texts may say the same as others. */
#include "kernels.h"

#define BETWEEN_TEXTS 0xff /* a byte that no text in UTF-8 has */

typedef struct {
    uint64_t key;
    int64_t text;
} Sign;

/* Shell's sort, by key: most of what is sorted here is short, where a call for each comparison would take the most time. */
static void sort(Sign *signs, int64_t count) {
    int64_t gap = 1;
    while (gap < count / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int64_t i = gap; i < count; i++) {
            Sign sign = signs[i];
            int64_t to = i;
            for (; to >= gap && signs[to - gap].key > sign.key; to -= gap) signs[to] = signs[to - gap];
            signs[to] = sign;
        }
}

/* A bijection that spreads its argument over all bits: the finaliser of MurmurHash3. */
static uint64_t spread(uint64_t value) {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ (value >> 33);
}

/* By byte: itself in lower case where it is of a word, 0 where it stands between words: ASCII's punctuation, separators
   and controls but for the signs that words hold. */
static void fill_letters(uint8_t *letters) {
    static const char signs[] = "'#%@&$+<=>^`|~";
    memset(letters, 0, 256);
    for (int byte = 0x80; byte < BETWEEN_TEXTS; byte++) letters[byte] = (uint8_t)byte;
    for (uint8_t byte = '0'; byte <= '9'; byte++) letters[byte] = byte;
    for (uint8_t byte = 'a'; byte <= 'z'; byte++) letters[byte] = letters[byte - 'a' + 'A'] = byte;
    for (const char *sign = signs; *sign; sign++) letters[(uint8_t)*sign] = (uint8_t)*sign;
}

/* A hash of each word from `at` up to the end of its text; how many. */
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

/* Bring the different ones among some signs to the front, by key; how many. */
static int64_t distinct(Sign *signs, int64_t count) {
    int64_t kept = 0;
    sort(signs, count);
    for (int64_t i = 0; i < count; i++)
        if (!kept || signs[kept - 1].key != signs[i].key) signs[kept++] = signs[i];
    return kept;
}

/* Mark the texts that have the same words as another, or that may share as much as `threshold` of their three-word
   shingles with another.

   Two sets that are as similar as that have one of their first (1 - threshold) * size + 1 members in common, in any
   order that is the same for both: the prefix filter of Chaudhuri, Ganti and Kaushik (ICDE 2006). The order is that of
   their hashes.

   texts: `count` of them in UTF-8, with a byte 0xff between each two.
   fewest, most: words of a text that has shingles.
   marks: out, 1 or 0 for each text.
   Returns how many are marked, -1 without memory, -2 where `texts` are not `count`. */
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
