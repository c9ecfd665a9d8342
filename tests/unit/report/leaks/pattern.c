/* SPDX-License-Identifier: MIT */
/* Patterns of suppressions, and the qualified names of functions. */
#include "base/pattern.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/compiler.h"
#include "report/symbols/qualified.h"

static const struct {
    const char *pattern, *text;
    int matches;
} cases[] = {
    {"grow", "grow", 1},
    {"grow", "regrown", 1},
    {"grow", "gro", 0},
    {"grow", "", 0},
    {"^grow", "grown", 1},
    {"^grow", "regrow", 0},
    {"grow$", "regrow", 1},
    {"grow$", "grown", 0},
    {"^grow$", "grow", 1},
    {"^grow$", "grow_", 0},
    {"^gr*w$", "grow", 1},
    {"^gr*w$", "grw", 1},
    {"^gr*w$", "growing", 0},
    {"^gr*w$", "grow now", 1}, /* the first w is not the last */
    {"a*b*c", "xxaxxbxxcxx", 1},
    {"a*b*c", "xxaxxcxxb", 0},
    {"*", "", 1},
    {"*", "anything", 1},
    {"^*$", "anything", 1},
    {"**o", "foo", 1},
    {"^$", "", 1},
    {"^$", "x", 0},
    {"$", "x", 1},
    {"a$b", "a$b", 1}, /* an anchor at the end only */
    {"a^b", "a^b", 1},
    {"aab", "aaab", 1},
    {"^*aab$", "aaaab", 1},
    {"::Cache<*>::grow(", "app::Cache<int>::grow(int)", 1},
    {"operator new(unsigned long)", "operator new(unsigned long)", 1},
};

Test(pattern, matches_as_leaksanitizers_do)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++)
        cr_expect_eq(cw_pattern_matches(cases[i].pattern, cases[i].text), cases[i].matches,
                     "'%s' and '%s'", cases[i].pattern, cases[i].text);
}

Test(pattern, many_stars_take_no_time)
{
    static char text[100000];

    memset(text, 'a', sizeof(text) - 1);
    cr_expect_not(cw_pattern_matches("a*a*a*a*a*a*a*a*b", text));
    cr_expect(cw_pattern_matches("^a*a*a*a*a*a*a*a*a$", text));
}

static const struct {
    const char *symbol, *name;
} symbols[] = {
    {"main", "::main"},
    {"nppiMalloc_8u_C1", "::nppiMalloc_8u_C1"},
    {"_ZN3c104cuda20CUDACachingAllocator6Native22DeviceCachingAllocator6mallocEmP11CUstream_st",
     "::c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc"},
    {"_ZN3rmm2mr20pool_memory_resourceINS0_20cuda_memory_resourceEE11expand_poolEm",
     "::rmm::mr::pool_memory_resource::expand_pool"},
    {"_ZN3app5cacheILb1ELm16ENS_3oddIiEEE4growEv", "::app::cache::grow"},
    {"_ZNK3app5cache4sizeEv", "::app::cache::size"},
    {"_ZNSt6vectorIiSaIiEE9push_backERKi", "::std::vector::push_back"},
    {"_ZN3app5cacheC2Ev", "::app::cache"},
    {"_Z4growi", "::grow"},
    {"_ZL4growi", "::grow"},
    {"_ZN3appL4growERNS_5cacheEi.constprop.0", "::app::grow"},
    {"_Z", "::_Z"},
    {"_ZN", "::_ZN"},
    {"_ZN9", "::_ZN9"},
    {"_ZN99x", "::_ZN99x"},
    {"_ZN3appI", "::app"},
    {"grow(int)", "::grow"},
    {"app::cache<app::odd<int> >::grow(app::other::cache*)", "::app::cache::grow"},
    {"void app::fill<app::cache>(app::cache&, int)", "::app::fill"},
    {"app::(anonymous namespace)::cache::grow()", "::app::(anonymous namespace)::cache::grow"},
    {"app::cache::operator()(int) const", "::app::cache::"},
    {"", "::"},
};

Test(pattern, qualified_names_are_those_of_mangled_and_readable_symbols)
{
    char name[256];

    for (size_t i = 0; i < CW_ARRAY_LEN(symbols); i++)
        cr_expect_str_eq(cw_qualified_name(symbols[i].symbol, name, sizeof(name)), symbols[i].name);
}

static const struct {
    const char *symbol, *name;
} read_symbols[] = {
    {"main", "main"},
    {"<module>", "<module>"},
    {"Net.forward.<locals>.<lambda>", "Net.forward.<locals>.<lambda>"},
    {"_Z4growi", "_Z4growi"},
    {"grow(int)", "grow"},
    {"grow(int) [clone .cold]", "grow"},
    {"at::Tensor at::empty<long, std::vector<int> >(c10::ArrayRef<long>) const", "at::empty"},
    {"app::cache<app::odd<int> >::grow(void (*)(int))", "app::cache::grow"},
    {"app::(anonymous namespace)::grow(int)", "app::(anonymous namespace)::grow"},
    {"(anonymous namespace)::grow(int)", "(anonymous namespace)::grow"},
    {"app::(anonymous namespace)::room", "app::(anonymous namespace)::room"},
    {"app::f(int)::{lambda(char)#1}::operator()(char) const",
     "app::f(int)::{lambda(char)#1}::operator()"},
    {"app::cache::operator[](int)", "app::cache::operator[]"},
    {"app::operator<<(std::ostream&, app::cache)", "app::operator<<"},
    {"operator new(unsigned long)", "operator new"},
    {"<(alloc::String, alloc::Vec<u8>) as core::Debug>::fmt",
     "<(alloc::String, alloc::Vec<u8>) as core::Debug>::fmt"},
    {"at::kernel<(int)4, float>::launch", "at::kernel<(int)4, float>::launch"},
    {"app::vector<int>::operator()", "app::vector<int>::operator()"},
    {"app::binary_operator<app::pair<int>, double>::run(int)", "app::binary_operator::run"},
    {"app::operators<int>::run(int)", "app::operators::run"},
    {"<int>(int)", "<int>(int)"},
    {")(", ")("},
    {"(", "("},
    {"", ""},
};

Test(pattern, short_names_are_for_reading)
{
    char name[256], small[12];

    for (size_t i = 0; i < CW_ARRAY_LEN(read_symbols); i++)
        cr_expect_str_eq(cw_short_name(read_symbols[i].symbol, 0, name, sizeof(name)),
                         read_symbols[i].name);
    cr_expect_str_eq(cw_short_name("app::cache::grow(int)", 0, small, sizeof(small)),
                     "app::cac...");
    cr_expect_str_eq(cw_short_name("grow(int)", 9, name, sizeof(name)), "grow(int)");
    cr_expect_str_eq(cw_short_name("grow(int)", 8, name, sizeof(name)), "grow");
}

Test(pattern, qualified_names_are_cut_to_fit)
{
    char name[8];

    cr_expect_str_eq(cw_qualified_name("abcdefghijkl", name, sizeof(name)), "::abcde");
    cr_expect_str_eq(cw_qualified_name("_ZN8abcdefgh8abcdefghE", name, sizeof(name)), "::abcde");
}

/* Every beginning of a name, and every name with one byte wrong, is read without harm. */
Test(pattern, broken_names_do_no_harm)
{
    char broken[256], name[64];

    for (size_t i = 0; i < CW_ARRAY_LEN(symbols); i++)
        for (size_t at = 0; at < strlen(symbols[i].symbol); at++) {
            for (const char *byte = "0 9EIN(<>SL~:"; *byte; byte++) {
                strcpy(broken, symbols[i].symbol);
                broken[at] = *byte;
                cw_qualified_name(broken, name, sizeof(name));
            }
            broken[at] = '\0';
            cr_expect_lt(strlen(cw_qualified_name(broken, name, sizeof(name))), sizeof(name));
        }
}
