/* SPDX-License-Identifier: MIT */
/* Suppressions and old blocks in the JSON report. See json_leak.h. */
#include "report/json/json_leak.h"

#include "report/snapshot/age.h"
#include "report/leaks/suppress.h"

#define RULE_MAX 1200 /* a longer one is cut */

void cw_json_leak_facts(struct cw_json *json, const struct cw_snapshot_site *site)
{
    if (site->owner != 0)
        cw_json_number(json, "owner", site->owner);
    if (site->leak != CW_LEAK_NONE)
        cw_json_string(json, "class", cw_leak_name(site));
    if (site->rule != CW_RULE_NONE)
        cw_json_number(json, "rule", site->rule);
    if (site->past_cap) {
        cw_json_key(json, "past_cap");
        cw_out_string(json->out, "true");
    }
    if (site->live_blocks > 0 && site->oldest_ns != 0)
        cw_json_number(json, "oldest_age_ns", cw_oldest_age(json->snapshot, site));
}

void cw_json_old(struct cw_json *json)
{
    const struct cw_snapshot_list *old = &json->snapshot->old;

    cw_json_open(json, "old", '{');
    cw_json_number(json, "age_ns", json->snapshot->old_ns);
    cw_json_number(json, "count", old->blocks);
    cw_json_number(json, "bytes", old->bytes);
    cw_json_open(json, "sites", '[');
    for (uint32_t i = 0; i < old->count; i++) {
        const struct cw_snapshot_site *site = &json->snapshot->site[old->site[i]];

        cw_json_element(json, '{');
        cw_json_number(json, "site", old->site[i]);
        cw_json_number(json, "count", site->old_blocks);
        cw_json_number(json, "bytes", site->old_bytes);
        cw_json_number(json, "oldest_age_ns", cw_oldest_age(json->snapshot, site));
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

static void put_rule(struct cw_json *json, uint32_t index, const struct cw_rule *rule,
                     const struct cw_rule_use *use)
{
    char words[RULE_MAX];
    struct cw_out out;

    cw_json_element(json, '{');
    cw_json_number(json, "id", index);
    if (cw_rule_is_builtin(rule)) {
        cw_json_string(json, "pattern", rule->pattern);
        cw_json_string(json, "source", "built-in");
        cw_json_string(json, "owner", rule->label);
    } else {
        cw_out_init(&out, -1, words, sizeof(words) - 1);
        cw_rule_print(rule, &out);
        words[out.len] = '\0';
        cw_json_string(json, "pattern", words);
        cw_json_string(json, "source", json->source->rules->path);
        cw_json_number(json, "line", rule->line);
    }
    cw_json_string(json, "class", cw_leak_class_name(rule->leak));
    cw_json_number(json, "sites", use->sites);
    cw_json_number(json, "count", use->blocks);
    cw_json_number(json, "bytes", use->bytes);
    cw_json_number(json, "sites_past_cap", use->past);
    cw_json_close(json, '}');
}

void cw_json_suppressions(struct cw_json *json)
{
    const struct cw_rules *rules = json->source->rules;

    cw_json_open(json, "suppressions", '[');
    for (uint32_t i = 0; rules && rules->use && i < cw_rules_count(rules); i++)
        if (i < rules->count || rules->use[i].sites > 0)
            put_rule(json, i, cw_rules_at(rules, i), &rules->use[i]);
    cw_json_close(json, ']');
}
