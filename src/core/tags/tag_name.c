/* SPDX-License-Identifier: MIT */
/*
 * Interns names, and counts for them. See tag_name.h.
 *
 * A name is complete before a chain or the count names it (release stores), and never changes then,
 * but for the pattern of its form, which is set once. Counters of a record are written under the
 * name's own lock (CW_RANK_STEPS); `begun` of a name without digits is only ever added to.
 */
#include "core/tags/tag_name.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/float_env.h"
#include "base/hash.h"
#include "base/out.h"
#include "base/utf8.h"

#define HEADS      1024 /* powers of two */
#define FORM_HEADS 256
#define KNOWN      4 /* texts of a thread */

struct name {
    char text[CW_TAG_NAME_MAX];
    uint32_t hash;
    uint8_t len, domain, is_pattern;
    uint16_t next;             /* in its chain */
    uint16_t form;             /* the first name of its form, itself perhaps; 0: no digits */
    uint16_t form_next;        /* of a first name */
    _Atomic uint16_t distinct; /* of a first name: those of the form that have their own tag */
    _Atomic uint16_t pattern;  /* 0: none */
    struct cw_lock counting;   /* CW_RANK_STEPS */
};

struct domain {
    char text[CW_TAG_NAME_MAX];
    uint32_t record; /* text in the arena, under the lock */
};

struct key {
    const char *text;
    uint32_t hash;
    uint8_t len, domain;
};

static struct cw_lock adding = CW_LOCK_INIT(CW_RANK_TAG);
static struct name names[CW_TAGS_MAX + 1]; /* pages of it are touched as names come */
static _Atomic uint32_t count;
static _Atomic uint16_t heads[HEADS], form_heads[FORM_HEADS];
static struct domain domains[CW_TAG_DOMAINS];
static _Atomic uint32_t domain_count = 1;

static struct cw_arena *arena;
static _Atomic uint32_t records; /* tags 1 .. records have one */

/* ---- text ---- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct key make_key(uint8_t domain, const char *text)
{
    struct key key = {
        .text = text, .len = (uint8_t)cw_utf8_cut(text, CW_TAG_NAME_MAX), .domain = domain};
    uint64_t h = domain, word = key.len;
    size_t i = 0;

    for (; i + sizeof(word) <= key.len; i += sizeof(word)) {
        h = cw_hash_mix(h, word);
        memcpy(&word, text + i, sizeof(word));
    }
    h = cw_hash_mix(h, word);
    for (word = 0; i < key.len; i++)
        word = word << 8 | (unsigned char)text[i];
    key.hash = (uint32_t)cw_hash_mix(h, word);
    return key;
}

/* The name with each number in it as one #; *out_len 0: there is none. */
static void make_form(const struct key *key, char out[CW_TAG_NAME_MAX], size_t *out_len)
{
    int has_digits = 0;
    size_t len = 0;

    for (size_t i = 0; i < key->len; i++) {
        int digit = is_digit(key->text[i]);

        if (digit && i > 0 && is_digit(key->text[i - 1]))
            continue;
        out[len++] = (char)(digit ? '#' : key->text[i]);
        has_digits |= digit;
    }
    out[len] = '\0';
    *out_len = has_digits ? len : 0;
}

/* Equal but for the digits. A # in the name does not stand for a number. */
static int has_form_of(const struct key *key, const struct name *name)
{
    size_t i = 0, k = 0;

    if (name->domain != key->domain)
        return 0;
    while (i < key->len && k < name->len) {
        int digit = is_digit(key->text[i]);

        if (digit != is_digit(name->text[k]) || (!digit && key->text[i] != name->text[k]))
            return 0;
        for (i++; digit && i < key->len && is_digit(key->text[i]);)
            i++;
        for (k++; digit && k < name->len && is_digit(name->text[k]);)
            k++;
    }
    return i == key->len && k == name->len;
}

/* ---- look-up ---- */

static uint16_t find(const struct key *key)
{
    uint32_t i = atomic_load_explicit(&heads[key->hash % HEADS], memory_order_acquire);

    while (i != 0) {
        const struct name *name = &names[i];

        if (name->hash == key->hash && name->len == key->len && name->domain == key->domain &&
            memcmp(name->text, key->text, key->len) == 0)
            return (uint16_t)i;
        i = name->next;
    }
    return 0;
}

static _Atomic uint16_t *form_head(const struct key *key, const char *form)
{
    return &form_heads[make_key(key->domain, form).hash % FORM_HEADS];
}

static uint16_t find_form(const struct key *key, const _Atomic uint16_t *head)
{
    uint32_t i = atomic_load_explicit(head, memory_order_acquire);

    while (i != 0 && !has_form_of(key, &names[i]))
        i = names[i].form_next;
    return (uint16_t)i;
}

/* The pattern for one more name of this form; 0: the name gets its own tag. */
static uint16_t shared_pattern(uint16_t first)
{
    if (first == 0 || atomic_load(&names[first].distinct) < CW_TAG_OWN_NAMES)
        return 0;
    return atomic_load(&names[first].pattern);
}

int cw_tag_name_is_known(uint32_t tag)
{
    return tag != 0 && tag <= atomic_load_explicit(&count, memory_order_acquire);
}

const char *cw_tag_name_label(uint16_t tag, char *buf, size_t cap)
{
    const char *domain = cw_tag_name_is_known(tag) ? domains[names[tag].domain].text : "";

    cw_format(buf, cap, "%s%s%s", cw_tag_name_is_known(tag) ? names[tag].text : "",
              domain[0] != '\0' ? "@" : "", domain);
    return buf;
}

/* ---- records ---- */

static struct cw_live_tag *record_of(uint16_t tag)
{
    if (tag == 0 || tag > atomic_load_explicit(&records, memory_order_acquire))
        return NULL;
    return cw_arena_at(arena, CW_TABLE_TAG, tag);
}

static uint32_t domain_text_locked(uint8_t domain)
{
    struct domain *at = &domains[domain];

    if (at->record == 0 && at->text[0] != '\0')
        at->record = cw_arena_text(arena, at->text, strlen(at->text));
    return at->record;
}

/* Without memory there are no records from here on: an index must be the same in both. */
static void add_record_locked(uint16_t tag)
{
    const struct name *name = &names[tag];
    struct cw_live_tag *record, *shown;
    uint32_t text;

    if (arena == NULL || atomic_load(&records) + 1 != tag)
        return;
    text = cw_arena_text(arena, name->text, name->len);
    if (text == 0 || cw_arena_append(arena, CW_TABLE_TAG) != tag)
        return;
    shown = cw_arena_at(arena, CW_TABLE_TAG, tag);
    record = cw_arena_own(arena, shown);
    record->domain = shown->domain = domain_text_locked(name->domain);
    record->is_pattern = shown->is_pattern = name->is_pattern;
    record->name = shown->name = text;
    atomic_store_explicit(&records, tag, memory_order_release);
}

void cw_tag_name_show_budget(uint16_t tag, uint8_t budget)
{
    struct cw_live_tag *record = record_of(tag);

    if (record != NULL)
        atomic_store_explicit(&record->budget, budget, memory_order_relaxed);
}

void cw_tag_name_init(struct cw_arena *in)
{
    cw_lock_acquire(&adding);
    arena = in;
    for (uint32_t tag = 1; tag <= atomic_load(&count); tag++)
        add_record_locked((uint16_t)tag);
    cw_lock_release(&adding);
}

void cw_tag_name_reset(void)
{
    cw_lock_reset(&adding);
    arena = NULL;
    atomic_store(&records, 0);
    for (unsigned i = 0; i < CW_TAG_DOMAINS; i++)
        domains[i].record = 0;
    /* One beyond the count: another thread may have been adding a name. */
    for (uint32_t tag = 1; tag <= atomic_load(&count) + 1 && tag <= CW_TAGS_MAX; tag++)
        cw_lock_reset(&names[tag].counting);
}

/* ---- adding ---- */

static uint16_t append_locked(const struct key *key, int is_pattern)
{
    static const char rest[] = "(other)";
    uint32_t tag = atomic_load(&count) + 1;
    struct name *name;

    if (tag > CW_TAGS_MAX)
        return CW_TAGS_MAX;
    name = &names[tag];
    memset(name, 0, sizeof(*name));
    cw_lock_init(&name->counting, CW_RANK_STEPS);
    if (tag == CW_TAGS_MAX) {
        memcpy(name->text, rest, sizeof(rest));
        name->len = sizeof(rest) - 1;
    } else {
        memcpy(name->text, key->text, key->len);
        name->len = key->len;
        name->domain = key->domain;
        name->hash = key->hash;
        name->is_pattern = (uint8_t)is_pattern;
    }
    add_record_locked((uint16_t)tag);
    atomic_store_explicit(&count, tag, memory_order_release);
    return (uint16_t)tag;
}

#define LOAD(field)         atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static void copy_counters(struct cw_live_tag *to, const struct cw_live_tag *from)
{
    STORE(to->begun, LOAD(from->begun));
    STORE(to->first_ns, LOAD(from->first_ns));
    STORE(to->last_ns, LOAD(from->last_ns));
    STORE(to->first_bytes, LOAD(from->first_bytes));
    STORE(to->last_bytes, LOAD(from->last_bytes));
    STORE(to->least_bytes, LOAD(from->least_bytes));
    STORE(to->most_bytes, LOAD(from->most_bytes));
    STORE(to->sum_y, LOAD(from->sum_y));
    STORE(to->sum_xy, LOAD(from->sum_xy));
    STORE(to->sum_yy, LOAD(from->sum_yy));
    atomic_store_explicit(&to->steps, LOAD(from->steps), memory_order_release);
}

/* Copied and linked in one go, so that no step of the first name is lost or counted twice. */
static void begin_pattern_locked(struct name *first, const char *form, uint16_t first_tag)
{
    struct key key = make_key(first->domain, form);
    uint16_t pattern = append_locked(&key, 1);
    struct cw_live_tag *to = record_of(pattern);

    if (pattern == CW_TAGS_MAX)
        return;
    cw_lock_acquire(&first->counting);
    if (to != NULL)
        copy_counters(to, record_of(first_tag));
    atomic_store(&first->pattern, pattern);
    cw_lock_release(&first->counting);
}

static void join_form_locked(uint16_t tag, uint16_t first, _Atomic uint16_t *head, const char *form)
{
    struct name *name = &names[tag];

    if (first == 0) {
        name->form = tag;
        name->form_next = atomic_load(head);
        atomic_store(&name->distinct, 1);
        atomic_store_explicit(head, tag, memory_order_release);
        return;
    }
    if (atomic_load(&names[first].pattern) == 0)
        begin_pattern_locked(&names[first], form, first);
    name->form = first;
    atomic_store(&name->pattern, atomic_load(&names[first].pattern));
    atomic_fetch_add(&names[first].distinct, 1);
}

static uint16_t add_locked(const struct key *key, uint16_t first, _Atomic uint16_t *head,
                           const char *form)
{
    _Atomic uint16_t *chain = &heads[key->hash % HEADS];
    uint16_t tag = append_locked(key, 0);

    if (tag == CW_TAGS_MAX)
        return tag;
    if (head != NULL)
        join_form_locked(tag, first, head, form);
    names[tag].next = atomic_load(chain);
    atomic_store_explicit(chain, tag, memory_order_release);
    return tag;
}

/* is_own: not that of its form. */
static CW_NOINLINE uint16_t add(const struct key *key, int is_own)
{
    char form[CW_TAG_NAME_MAX];
    _Atomic uint16_t *head = NULL;
    int saved = errno; /* the arena may have to grow */
    size_t form_len;
    uint16_t tag;

    make_form(key, form, &form_len);
    if (form_len != 0)
        head = form_head(key, form);
    tag = head != NULL && !is_own ? shared_pattern(find_form(key, head)) : 0;
    if (tag == 0 && atomic_load(&count) == CW_TAGS_MAX)
        tag = CW_TAGS_MAX;
    if (tag != 0)
        return tag;
    cw_lock_acquire(&adding);
    tag = find(key);
    if (tag == 0) {
        uint16_t first = head != NULL ? find_form(key, head) : 0;

        tag = is_own ? 0 : shared_pattern(first);
        if (tag == 0)
            tag = add_locked(key, first, head, form);
    }
    cw_lock_release(&adding);
    errno = saved;
    return tag;
}

uint16_t cw_tag_name(uint8_t domain, const char *text)
{
    struct key key;
    uint16_t tag;

    if (text == NULL || text[0] == '\0')
        return 0;
    key = make_key(domain, text);
    tag = find(&key);
    return CW_LIKELY(tag != 0) ? tag : add(&key, 0);
}

void cw_tag_name_own(const char *text)
{
    struct key key = make_key(0, text);
    char form[CW_TAG_NAME_MAX];
    size_t form_len;

    make_form(&key, form, &form_len);
    if (form_len != 0 && find(&key) == 0)
        add(&key, 1);
}

/* A text may have changed in its place, so it is compared. */
uint16_t cw_tag_name_again(const char *text)
{
    static CW_TLS struct known {
        const char *text;
        uint16_t tag;
    } known[KNOWN];
    struct known *at = &known[((uintptr_t)text >> 3 ^ (uintptr_t)text) % KNOWN];

    if (CW_UNLIKELY(at->text != text || strcmp(names[at->tag].text, text) != 0)) {
        at->tag = cw_tag_name(0, text);
        at->text = text;
    }
    return at->tag;
}

uint16_t cw_tag_name_find(uint8_t domain, const char *text)
{
    struct key key;

    if (text == NULL || text[0] == '\0')
        return 0;
    key = make_key(domain, text);
    return find(&key);
}

static uint8_t add_domain_locked(const char *text, size_t len)
{
    uint32_t domain = atomic_load(&domain_count);

    if (domain == CW_TAG_DOMAINS - 1) {
        text = "(other)";
        len = strlen(text);
    }
    memcpy(domains[domain].text, text, len);
    atomic_store_explicit(&domain_count, domain + 1, memory_order_release);
    return (uint8_t)domain;
}

uint8_t cw_tag_domain(const char *text)
{
    size_t len = text != NULL ? cw_utf8_cut(text, CW_TAG_NAME_MAX) : 0;
    uint32_t found = 1;

    if (len == 0)
        return 0;
    cw_lock_acquire(&adding);
    while (found < atomic_load(&domain_count) &&
           (strlen(domains[found].text) != len || memcmp(domains[found].text, text, len) != 0))
        found++;
    if (found == CW_TAG_DOMAINS)
        found = CW_TAG_DOMAINS - 1;
    else if (found == atomic_load(&domain_count))
        found = add_domain_locked(text, len);
    cw_lock_release(&adding);
    return (uint8_t)found;
}

/* ---- counting ---- */

void cw_tag_name_begun(uint16_t tag)
{
    struct cw_live_tag *record = record_of(tag);
    struct name *name = &names[tag];
    uint16_t pattern;

    if (record == NULL)
        return;
    if (CW_LIKELY(name->form == 0)) {
        atomic_fetch_add_explicit(&record->begun, 1, memory_order_relaxed);
        return;
    }
    cw_lock_acquire(&name->counting);
    atomic_fetch_add_explicit(&record->begun, 1, memory_order_relaxed);
    pattern = atomic_load(&name->pattern);
    cw_lock_release(&name->counting);
    cw_tag_name_begun(pattern);
}

static uint64_t plus(uint64_t bits, double value)
{
    double sum;

    memcpy(&sum, &bits, sizeof(sum));
    sum += value;
    memcpy(&bits, &sum, sizeof(sum));
    return bits;
}

static CW_NOINLINE void count_step(struct cw_live_tag *record, uint64_t now_ns, uint64_t bytes)
{
    uint64_t steps = LOAD(record->steps) + 1;
    double x = (double)steps, y = (double)bytes;

    if (steps == 1) {
        STORE(record->first_ns, now_ns);
        STORE(record->first_bytes, bytes);
        STORE(record->least_bytes, bytes);
    }
    STORE(record->last_ns, now_ns);
    STORE(record->last_bytes, bytes);
    if (bytes < LOAD(record->least_bytes))
        STORE(record->least_bytes, bytes);
    if (bytes > LOAD(record->most_bytes))
        STORE(record->most_bytes, bytes);
    STORE(record->sum_y, plus(LOAD(record->sum_y), y));
    STORE(record->sum_xy, plus(LOAD(record->sum_xy), x * y));
    STORE(record->sum_yy, plus(LOAD(record->sum_yy), y * y));
    atomic_store_explicit(&record->steps, steps, memory_order_release);
}

void cw_tag_name_step(uint16_t tag, uint64_t now_ns, uint64_t live_bytes)
{
    struct cw_live_tag *record = record_of(tag);
    struct name *name = &names[tag];
    struct cw_float_env env;
    uint16_t pattern;

    if (record == NULL)
        return;
    cw_lock_acquire(&name->counting);
    env = cw_float_hold();
    count_step(record, now_ns, live_bytes);
    cw_float_release(&env);
    pattern = atomic_load(&name->pattern);
    cw_lock_release(&name->counting);
    if (pattern != 0)
        cw_tag_name_step(pattern, now_ns, live_bytes);
}
