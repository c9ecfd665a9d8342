/* SPDX-License-Identifier: MIT */
/* The values of options: every form good and bad, overflow and rounding, lists by device and which
 * item wins, and printed values that parse back. Counts and report destinations are in options.c.
 */
#include "base/options/option_values.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#define KIB        UINT64_C(1024)
#define MIB        (1024 * KIB)
#define GIB        (1024 * MIB)
#define TIB        (1024 * GIB)
#define PERCENT    (CW_SHARE_OF_WHOLE / 100)
#define TEXT_MAX   1024
#define UUID       "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define UUID_UPPER "GPU-00112233-4455-6677-8899-AABBCCDDEEFF"
#define ROUNDS     20000

__extension__ typedef unsigned __int128 wide;

static const uint8_t uuid[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

static struct cw_device_sizes sizes;
static struct cw_option_batches batches;

struct number_case {
    const char *text;
    uint64_t wanted;
};

/* ---- what is refused ---- */

static int parses_sizes(const char *text)
{
    return cw_sizes_parse(text, 1, &sizes) == 0;
}

static int parses_time(const char *text)
{
    uint64_t ns;

    return cw_time_parse(text, &ns) == 0;
}

static int parses_batches(const char *text)
{
    return cw_batches_parse(text, &batches) == 0;
}

/* texts: with '|' between them. */
static void expect_all_refused(const char *texts, int (*parses)(const char *text))
{
    char copy[2 * TEXT_MAX];
    char *rest = copy;

    cr_assert_lt(snprintf(copy, sizeof(copy), "%s", texts), (int)sizeof(copy));
    for (const char *text = strsep(&rest, "|"); text; text = strsep(&rest, "|"))
        cr_expect_eq(parses(text), 0, "'%s'", text);
}

/* ---- sizes ---- */

static void expect_size(const char *text, enum cw_size_kind kind, uint64_t amount)
{
    memset(&sizes, 0xff, sizeof(sizes));
    cr_expect_eq(cw_sizes_parse(text, 1, &sizes), 0, "%s", text);
    cr_expect_eq(sizes.count, 0u);
    cr_expect_eq(sizes.fallback.kind, kind, "%s", text);
    cr_expect_eq(sizes.fallback.amount, amount, "%s: %ju", text, (uintmax_t)sizes.fallback.amount);
}

/* text: forms of the same size, with '|' between them. */
static void expect_sizes(const struct number_case *cases, size_t count, enum cw_size_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        char copy[TEXT_MAX];
        char *rest = copy;

        snprintf(copy, sizeof(copy), "%s", cases[i].text);
        for (const char *text = strsep(&rest, "|"); text; text = strsep(&rest, "|"))
            expect_size(text, kind, cases[i].wanted);
    }
}

Test(option_values, sizes_take_every_unit)
{
    static const struct number_case cases[] = {
        {"0|000|0K|0.0T", 0},
        {"1|01|1B|1b", 1},
        {"4096|4096B|4K|4.0KiB", 4096},
        {"18446744073709551615", UINT64_MAX},
        {"8K|8KB|8KiB|8k|8kb|8kB|8kib|8KIB|8KIb|8192", 8 * KIB},
        {"8M|8MB|8MiB|8m|8mb|8mB|8mib|8MIB|8192K", 8 * MIB},
        {"8G|8GB|8GiB|8g|8gb|8gB|8gib|8GIB|8192M", 8 * GIB},
        {"8T|8TB|8TiB|8t|8tb|8tB|8tib|8TIB|8192G", 8 * TIB},
        {"1.5G|1536M|1.50000G|1.5Gi", 3 * GIB / 2},
        {"0.5K|512|512B", 512},
        {"1.25m|1280K", 5 * MIB / 4},
        {"16777215T", 16777215 * TIB},
    };

    expect_sizes(cases, CW_ARRAY_LEN(cases), CW_SIZE_BYTES);
}

Test(option_values, fractions_of_a_byte_are_dropped)
{
    static const struct number_case cases[] = {
        {"0.1K", 102},                 /* 102.4 */
        {"0.001K", 1},                 /* 1.024 */
        {"0.0009K", 0},                /* 0.9216 */
        {"0.1G", 107374182},           /* .4 */
        {"0.9999999999G", 1073741823}, /* .89 */
        {"0.333333333333333333T", 366503875925},
        {"0.999999999999999999T", TIB - 1}, /* all 18 decimals count */
        {"0.000000000000909495T", 1},       /* 2^-40 = 0.9094947017...e-12 */
        {"0.000000000000909494T", 0},
        {"16777215.999999999999999999T", UINT64_MAX},
    };

    expect_sizes(cases, CW_ARRAY_LEN(cases), CW_SIZE_BYTES);
}

Test(option_values, shares_are_0_to_100_percent)
{
    static const struct number_case cases[] = {
        {"0%", 0},
        {"1%", PERCENT},
        {"25%", 25 * PERCENT},
        {"12.5%", 25 * PERCENT / 2},
        {"100%", CW_SHARE_OF_WHOLE},
        {"100.000%", CW_SHARE_OF_WHOLE},
        {"0.000001%", 1},
        {"0.0000019%", 1}, /* dropped below a millionth of a percent */
        {"99.999999999999999999%", CW_SHARE_OF_WHOLE - 1},
    };

    expect_sizes(cases, CW_ARRAY_LEN(cases), CW_SIZE_SHARE);
}

Test(option_values, bad_sizes_are_refused_and_leave_what_was)
{
    cr_assert_eq(cw_sizes_parse("1:2K,3G", 1, &sizes), 0);
    /* 1.5 is a forgotten unit; then 19 decimals; then what 64 bits do not hold. */
    expect_all_refused(
        "| |G|-1|+1|-1G| 8G|8G |8 "
        "G|8GG|8Gib8|8GiBs|8iB|8BB|8Bi|1.5B|8KM|8Q|8P|8E|x8G|0x8G|1e3|8,5G|"
        "8..5G|1.5.5G|1.|1.G|.5G|.|1.5|1.0|0.0000000000000000001G|18446744073709551616|"
        "18014398509481984K|17592186044416M|17179869184G|16777216T|99999999999999999999T|%|"
        "-5%|101%|100.1%|100.000000000000000001%|18446744073709551615%|5%%|5 %|5%G|5G%|None|"
        "NONE|nones|non|8G\xc2\xa0",
        parses_sizes);
    cr_expect_eq(sizes.count, 1u);
    cr_expect_eq(sizes.device[0].size.amount, 2 * KIB);
    cr_expect_eq(sizes.fallback.amount, 3 * GIB);
}

Test(option_values, none_is_a_word_where_it_is_taken)
{
    uint64_t bytes = 7;

    expect_size("none", CW_SIZE_NONE, 0);
    cr_expect_eq(cw_sizes_for(&sizes, 0, uuid, GIB, &bytes), 0);
    cr_expect_eq(cw_sizes_parse("none", 0, &sizes), -1);
    cr_expect_eq(cw_sizes_parse("0:none,8G", 0, &sizes), -1);
    cr_assert_eq(cw_sizes_parse("0:none,8G", 1, &sizes), 0);
    cr_expect_eq(cw_sizes_for(&sizes, 0, uuid, GIB, &bytes), 0);
    cr_expect_eq(bytes, 7u); /* set only on success */
    cr_expect_eq(cw_sizes_for(&sizes, 1, uuid, GIB, &bytes), 1);
    cr_expect_eq(bytes, 8 * GIB);
}

/* ---- by device ---- */

static uint64_t size_for(unsigned device, const uint8_t *its_uuid, uint64_t total)
{
    uint64_t bytes = 0;

    cr_expect_eq(cw_sizes_for(&sizes, device, its_uuid, total, &bytes), 1);
    return bytes;
}

Test(option_values, a_list_names_each_device_and_the_others)
{
    memset(&sizes, 0, sizeof(sizes));
    cr_assert_eq(cw_sizes_parse("0:8G,1:50%,4M," UUID ":2G,4294967295:1", 0, &sizes), 0);
    cr_expect_eq(sizes.count, 4u);
    cr_expect_eq(size_for(0, NULL, 1000), 8 * GIB);
    cr_expect_eq(size_for(1, NULL, 1000), 500u);
    cr_expect_eq(size_for(2, NULL, 1000), 4 * MIB);
    cr_expect_eq(size_for(UINT32_MAX, NULL, 1000), 1u);
    cr_expect_eq(size_for(2, uuid, 1000), 2 * GIB);
}

Test(option_values, the_uuid_wins_over_the_ordinal_and_that_over_the_others)
{
    uint8_t other[16];

    memset(&sizes, 0, sizeof(sizes));
    cr_assert_eq(cw_sizes_parse("7,0:1K," UUID_UPPER ":1M", 0, &sizes), 0);
    cr_expect_eq(size_for(0, uuid, 0), MIB);
    cr_expect_eq(size_for(5, uuid, 0), MIB);
    cr_expect_eq(size_for(0, NULL, 0), KIB);
    cr_expect_eq(size_for(5, NULL, 0), 7u);
    for (size_t i = 0; i < sizeof(other); i++) {
        memcpy(other, uuid, sizeof(other));
        other[i] ^= 0x10;
        cr_expect_eq(size_for(0, other, 0), KIB);
        cr_expect_eq(size_for(5, other, 0), 7u);
    }
}

/* A device with ordinal 0 is not one with a uuid of zeros, and the other way round. */
Test(option_values, ordinals_and_uuids_do_not_mix)
{
    static const uint8_t zeros[16];

    memset(&sizes, 0, sizeof(sizes));
    cr_assert_eq(cw_sizes_parse("9,GPU-00000000-0000-0000-0000-000000000000:1", 0, &sizes), 0);
    cr_expect_eq(size_for(0, uuid, 0), 9u);
    cr_expect_eq(size_for(0, zeros, 0), 1u);
    cr_assert_eq(cw_sizes_parse("9,0:1", 0, &sizes), 0);
    cr_expect_eq(size_for(3, zeros, 0), 9u);
}

Test(option_values, a_list_without_the_others_leaves_them)
{
    uint64_t bytes;

    memset(&sizes, 0, sizeof(sizes));
    cr_assert_eq(cw_sizes_parse("1:1K", 0, &sizes), 0);
    cr_expect_eq(cw_sizes_for(&sizes, 0, uuid, GIB, &bytes), 0);
    cr_assert_eq(cw_sizes_parse("3M", 0, &sizes), 0);
    cr_expect_eq(size_for(1, uuid, 0), 3 * MIB); /* the list is replaced */
    cr_assert_eq(cw_sizes_parse("2:5", 0, &sizes), 0);
    cr_expect_eq(size_for(2, uuid, 0), 5u);
    cr_expect_eq(size_for(1, uuid, 0), 3 * MIB);
}

Test(option_values, bad_lists_are_refused)
{
    expect_all_refused(",|8G,|,8G|0:8G,|0:8G,,1:4G|0:|:8G|0:,1:8G|0:8G:4G|0 :8G|0: 8G|0:8G, 1:8G|"
                       "0:8G;1:8G|-1:8G|x:8G|0x0:8G|4294967296:8G|18446744073709551616:8G",
                       parses_sizes);
    /* Each device once, the others once. */
    expect_all_refused("8G,4G|8G,0:1,8G|0:8G,0:8G|0:8G,1:8G,00:4G|" UUID ":1," UUID ":2|" UUID
                       ":1," UUID_UPPER ":2",
                       parses_sizes);
    expect_all_refused(UUID "|GPU:1|GPU-:1|GPU-0011:1|GPU-00112233445566778899aabbccddeeff:1|"
                            "GPU-00112233-4455-6677-8899-aabbccddeef:1|"
                            "GPU-00112233-4455-6677-8899-aabbccddeeff0:1|"
                            "GPU-00112233-4455-6677-8899-aabbccddeeff-:1|"
                            "GPU-00112233-4455-6677-8899-aabbccddeefg:1|"
                            "GPU-0011223-34455-6677-8899-aabbccddeeff:1|"
                            "GPU-0011-2233-4455-6677-8899-aabbccddeeff:1|"
                            "gpu-00112233-4455-6677-8899-aabbccddeeff:1|"
                            "mig-00112233-4455-6677-8899-aabbccddeeff:1|MIG-0011:1|"
                            "00112233-4455-6677-8899-aabbccddeeff:1",
                       parses_sizes);
}

Test(option_values, sixteen_devices_fit_and_no_more)
{
    char text[TEXT_MAX] = "5";

    for (unsigned i = 0; i < CW_SIZES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%u:%u", i, i + 100);
    memset(&sizes, 0, sizeof(sizes));
    cr_assert_eq(cw_sizes_parse(text, 0, &sizes), 0);
    cr_expect_eq(sizes.count, (unsigned)CW_SIZES_MAX);
    cr_expect_eq(size_for(CW_SIZES_MAX - 1, NULL, 0), (uint64_t)CW_SIZES_MAX + 99);
    cr_expect_eq(size_for(CW_SIZES_MAX, NULL, 0), 5u);
    strcat(text, ",99:1");
    cr_expect_eq(cw_sizes_parse(text, 0, &sizes), -1);
}

/* ---- random values, the same on every run ---- */

static uint64_t random_state = 1;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Of any magnitude, and often round. */
static uint64_t random_amount(void)
{
    uint64_t amount = random_number() >> random_number() % 64;

    return random_number() % 2 ? amount : amount >> 20 << random_number() % 41;
}

Test(option_values, shares_are_rounded_down_whatever_the_size_of_the_device)
{
    memset(&sizes, 0, sizeof(sizes));
    sizes.fallback.kind = CW_SIZE_SHARE;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t total = random_amount();
        uint64_t share = random_number() % (CW_SHARE_OF_WHOLE + 1);

        sizes.fallback.amount = share;
        cr_assert_eq(size_for(0, NULL, total), (uint64_t)((wide)total * share / CW_SHARE_OF_WHOLE));
    }
    sizes.fallback.amount = CW_SHARE_OF_WHOLE;
    cr_expect_eq(size_for(0, NULL, UINT64_MAX), UINT64_MAX);
}

/* Against the same sum in 128 bits. */
Test(option_values, fractions_are_exact)
{
    static const struct {
        const char *name;
        uint64_t size;
    } units[] = {{"K", KIB}, {"M", MIB}, {"G", GIB}, {"T", TIB}};

    for (int i = 0; i < ROUNDS; i++) {
        size_t unit = random_number() % CW_ARRAY_LEN(units);
        uint64_t whole = random_number() >> (24 + random_number() % 40);
        int decimals = 1 + (int)(random_number() % 18);
        uint64_t power = 1;
        uint64_t fraction;
        char text[64];
        wide wanted;

        for (int digit = 0; digit < decimals; digit++)
            power *= 10;
        fraction = random_number() % power;
        snprintf(text, sizeof(text), "%ju.%0*ju%s", (uintmax_t)whole, decimals, (uintmax_t)fraction,
                 units[unit].name);
        wanted = (wide)whole * units[unit].size + (wide)fraction * units[unit].size / power;
        if (wanted > UINT64_MAX)
            cr_assert_eq(cw_sizes_parse(text, 0, &sizes), -1, "%s", text);
        else
            expect_size(text, CW_SIZE_BYTES, (uint64_t)wanted);
    }
}

/* ---- printing of sizes ---- */

static const char *print_sizes(void)
{
    static char text[TEXT_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_sizes_print(&sizes, &out);
    cr_expect_eq(out.truncated, 0);
    text[out.len] = '\0';
    return text;
}

Test(option_values, sizes_are_printed_as_one_would_write_them)
{
    static const char *const pairs[][2] = {
        {"0", "0"},
        {"1", "1"},
        {"1000", "1000"},
        {"1024", "1K"},
        {"1536", "1.5K"},
        {"1280", "1280"},
        {"0.5K", "512"},
        {"8GiB", "8G"},
        {"1536m", "1.5G"},
        {"1.25G", "1280M"},
        {"2048G", "2T"},
        {"1073741825", "1073741825"},
        {"18446744073709551615", "18446744073709551615"},
        {"025.50%", "25.5%"},
        {"0.000001%", "0.000001%"},
        {"100.0%", "100%"},
        {"0.0%", "0%"},
        {"none", "none"},
        {"0:8192M,1:50.0%,1024", "0:8G,1:50%,1K"},
        {"7," UUID_UPPER ":none,3:0", UUID ":none,3:0,7"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(pairs); i++) {
        cr_assert_eq(cw_sizes_parse(pairs[i][0], 1, &sizes), 0, "%s", pairs[i][0]);
        cr_expect_str_eq(print_sizes(), pairs[i][1]);
    }
}

static struct cw_size random_size(void)
{
    switch (random_number() % 8) {
    case 0:
        return (struct cw_size){.kind = CW_SIZE_NONE};
    case 1:
    case 2:
        return (struct cw_size){CW_SIZE_SHARE, random_number() % (CW_SHARE_OF_WHOLE + 1)};
    default:
        return (struct cw_size){CW_SIZE_BYTES, random_amount()};
    }
}

static void fill_sizes(void)
{
    memset(&sizes, 0, sizeof(sizes));
    sizes.fallback = random_size();
    sizes.count = (unsigned)(random_number() % (CW_SIZES_MAX + 1));
    for (unsigned i = 0; i < sizes.count; i++) {
        struct cw_device_size *item = &sizes.device[i];

        item->size = random_size();
        item->named_by = random_number() % 2 ? CW_DEVICE_UUID : CW_DEVICE_ORDINAL;
        if (item->named_by == CW_DEVICE_ORDINAL)
            item->ordinal = i * 1000 + (uint32_t)(random_number() % 1000);
        else
            for (size_t byte = 0; byte < sizeof(item->uuid); byte++)
                item->uuid[byte] = byte == 0 ? (uint8_t)i : (uint8_t)random_number();
    }
}

static void expect_same_size(const struct cw_size *one, const struct cw_size *other)
{
    cr_assert_eq(one->kind, other->kind);
    cr_assert_eq(one->amount, other->amount);
}

Test(option_values, printed_sizes_parse_back)
{
    for (int round = 0; round < ROUNDS / 10; round++) {
        struct cw_device_sizes back;

        fill_sizes();
        memset(&back, 0xff, sizeof(back));
        cr_assert_eq(cw_sizes_parse(print_sizes(), 1, &back), 0, "%s", print_sizes());
        cr_assert_eq(back.count, sizes.count);
        expect_same_size(&back.fallback, &sizes.fallback);
        for (unsigned i = 0; i < sizes.count; i++) {
            expect_same_size(&back.device[i].size, &sizes.device[i].size);
            cr_assert_eq(back.device[i].named_by, sizes.device[i].named_by);
            cr_assert_eq(back.device[i].ordinal, sizes.device[i].ordinal);
            cr_assert_eq(memcmp(back.device[i].uuid, sizes.device[i].uuid, 16), 0);
        }
    }
}

/* ---- times ---- */

static const char *print_time(uint64_t ns)
{
    static char text[64];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_time_print(ns, &out);
    text[out.len] = '\0';
    return text;
}

Test(option_values, times_take_every_unit)
{
    static const struct {
        const char *text;
        uint64_t ns;
        const char *printed;
    } cases[] = {
        {"0", 0, "0s"},
        {"0ms", 0, "0s"},
        {"500ms", 500000000, "500ms"},
        {"1MS", 1000000, "1ms"},
        {"10", 10000000000, "10s"},
        {"10s", 10000000000, "10s"},
        {"10S", 10000000000, "10s"},
        {"1.5", 1500000000, "1.5s"},
        {"1.5s", 1500000000, "1.5s"},
        {"1500ms", 1500000000, "1.5s"},
        {"90s", 90000000000, "90s"},
        {"120s", 120000000000, "2m"},
        {"2m", 120000000000, "2m"},
        {"1.5M", 90000000000, "90s"},
        {"90m", 5400000000000, "90m"},
        {"60m", 3600000000000, "1h"},
        {"1H", 3600000000000, "1h"},
        {"0.25h", 900000000000, "15m"},
        {"0.5ms", 500000, "0.0005s"},
        {"0.000000001s", 1, "0.000000001s"},
        {"0.0000000019s", 1, "0.000000001s"},
        {"18446744073.709551615", UINT64_MAX, "18446744073.709551615s"},
    };
    uint64_t ns;

    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        cr_expect_eq(cw_time_parse(cases[i].text, &ns), 0, "%s", cases[i].text);
        cr_expect_eq(ns, cases[i].ns, "%s: %ju", cases[i].text, (uintmax_t)ns);
        cr_expect_str_eq(print_time(ns), cases[i].printed);
    }
}

Test(option_values, bad_times_are_refused)
{
    uint64_t ns = 7;

    expect_all_refused(
        "|s|ms|-1s|+1s| 1s|1s |1 s|1d|1min|1sec|1mss|1us|1hm|.5s|1.s|1..5s|1,5s|1m30|1:30|1K|"
        "1%|none|0x1|1e3s|5124096h|18446744073.709551616|99999999999999999999|"
        "0.0000000000000000001s",
        parses_time);
    cr_expect_eq(cw_time_parse("1d", &ns), -1);
    cr_expect_eq(ns, 7u);
}

Test(option_values, printed_times_parse_back)
{
    static const uint64_t steps[] = {1, 1000000, 1000000000, 60000000000, 3600000000000};

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns = random_amount();
        uint64_t back;

        ns -= ns % steps[random_number() % CW_ARRAY_LEN(steps)];
        cr_assert_eq(cw_time_parse(print_time(ns), &back), 0);
        cr_assert_eq(back, ns, "%s", print_time(ns));
    }
}

/* ---- batches ---- */

static const char *print_batches(void)
{
    static char text[TEXT_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_batches_print(&batches, &out);
    cr_expect_eq(out.truncated, 0);
    text[out.len] = '\0';
    return text;
}

Test(option_values, batches_are_sizes_with_counts)
{
    cr_assert_eq(cw_batches_parse("64M:8,1.5gib:2,1:4096,1T:1", &batches), 0);
    cr_expect_eq(batches.count, 4u);
    cr_expect_eq(batches.item[0].bytes, 64 * MIB);
    cr_expect_eq(batches.item[0].blocks, 8u);
    cr_expect_eq(batches.item[1].bytes, 3 * GIB / 2);
    cr_expect_eq(batches.item[1].blocks, 2u);
    cr_expect_eq(batches.item[2].bytes, 1u);
    cr_expect_eq(batches.item[2].blocks, 4096u);
    cr_expect_eq(batches.item[3].bytes, TIB);
    cr_expect_str_eq(print_batches(), "64M:8,1.5G:2,1:4096,1T:1");
    cr_assert_eq(cw_batches_parse("", &batches), 0);
    cr_expect_eq(batches.count, 0u);
    cr_expect_str_eq(print_batches(), "");
}

Test(option_values, bad_batches_are_refused_and_leave_what_was)
{
    cr_assert_eq(cw_batches_parse("2K:3", &batches), 0);
    expect_all_refused(
        " |,|1M|1M:|:1|1M:0|1M:4097|1M:-1|1M:1.0|1M:1K|1M:x|1M:18446744073709551617|0:1|"
        "0.0001K:1|1.5:1|1T1:1|1025G:1|1099511627777:1|1M:1,|,1M:1|1M:1,,2M:1|1M:1 | 1M:1|"
        "1M :1|1M: 1|1M:1, 2M:1|1M:1;2M:1|1M:1:1|50%:1|none|none:1|1M,1|1Mx1|16777216T:1",
        parses_batches);
    cr_expect_str_eq(print_batches(), "2K:3");
}

Test(option_values, sixteen_batches_fit_and_no_more)
{
    char text[TEXT_MAX] = "1:1";

    for (unsigned i = 1; i < CW_BATCHES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%u:%u", i + 1, i + 1);
    cr_assert_eq(cw_batches_parse(text, &batches), 0);
    cr_expect_eq(batches.count, (unsigned)CW_BATCHES_MAX);
    cr_expect_str_eq(print_batches(), text);
    strcat(text, ",1:1");
    cr_expect_eq(cw_batches_parse(text, &batches), -1);
}

Test(option_values, printed_batches_parse_back)
{
    for (int round = 0; round < ROUNDS / 10; round++) {
        struct cw_option_batches back;

        batches.count = (unsigned)(random_number() % (CW_BATCHES_MAX + 1));
        for (unsigned i = 0; i < batches.count; i++) {
            batches.item[i].bytes = random_amount() % CW_BATCH_BYTES + 1;
            batches.item[i].blocks = (uint32_t)(random_number() % CW_BATCH_BLOCKS) + 1;
        }
        cr_assert_eq(cw_batches_parse(print_batches(), &back), 0, "%s", print_batches());
        cr_assert_eq(back.count, batches.count);
        for (unsigned i = 0; i < batches.count; i++) {
            cr_assert_eq(back.item[i].bytes, batches.item[i].bytes);
            cr_assert_eq(back.item[i].blocks, batches.item[i].blocks);
        }
    }
}
