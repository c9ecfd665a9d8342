/* SPDX-License-Identifier: MIT */
/* Results of a replay as text and as JSON. */
#include <inttypes.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "base/out.h"
#include "cli/replay/replay_policy.h"
#include "cli/ui/message.h"
#include "live/view.h"

struct size {
    char text[24];
};

static struct size size_of(uint64_t bytes)
{
    struct size size;

    cw_format_size(size.text, sizeof(size.text), bytes);
    return size;
}

static const char *cause_of(const struct cw_replay_oom *oom)
{
    if (oom->cause == CW_CAUSE_LIMIT)
        return "blocked by LIMIT";
    if (oom->cause == CW_CAUSE_MIN_FREE)
        return "blocked by MIN_FREE";
    return oom->free >= oom->asked ? "free memory too fragmented" : "device full";
}

/* Over all devices, without the host. */
static struct cw_replay_device all_devices(const struct cw_replay_result *result)
{
    struct cw_replay_device sum = {0};

    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        sum.peak_live += result->device[i].peak_live;
        sum.peak_held += result->device[i].peak_held;
        sum.peak_unused += result->device[i].peak_unused;
        sum.requests += result->device[i].requests;
        sum.hits += result->device[i].hits;
        sum.asked += result->device[i].asked;
        sum.given += result->device[i].given;
    }
    return sum;
}

static uint64_t fragments(const struct cw_replay_device *all)
{
    return all->peak_held > all->peak_live ? all->peak_held - all->peak_live : 0;
}

/* Hits of the unbounded cache on the devices; 0: unknown. */
static uint64_t unbounded_hits(const struct cw_policies *policies)
{
    for (unsigned i = 0; i < policies->count; i++)
        if (strcmp(policies->policy[i].name, CW_POLICY_UNBOUNDED) == 0)
            return all_devices(&policies->policy[i].result).hits;
    return 0;
}

/* ---- text ---- */

struct percent {
    char text[24];
};

static struct percent percent_of(uint64_t part, uint64_t whole)
{
    struct percent percent = {"-"};

    if (whole != 0)
        snprintf(percent.text, sizeof(percent.text), "%.1f%%",
                 100.0 * (double)part / (double)whole);
    return percent;
}

static void print_trace(const struct cw_policies *policies, FILE *out)
{
    const struct cw_replay_result *result = &policies->policy[0].result;
    char duration[32];

    fprintf(out, "%s: %" PRIu64 " allocation%s and %" PRIu64 " free%s", policies->shown,
            result->allocs, cw_cli_plural(result->allocs), result->frees,
            cw_cli_plural(result->frees));
    if (result->has_times)
        fprintf(out, " in %s", cw_format_duration(duration, sizeof(duration), result->span_ns));
    fprintf(out, ", on a device of %s\n", size_of(policies->device_bytes).text);
    if (result->is_cut)
        fprintf(out, "the trace ends in mid-line or in zeros: its process was killed\n");
    if (result->failures > 0)
        fprintf(out, "%" PRIu64 " allocation%s failed in the program and %s skipped\n",
                result->failures, cw_cli_plural(result->failures),
                result->failures == 1 ? "is" : "are");
    if (result->unknown_frees + result->doubled > 0)
        fprintf(out,
                "%" PRIu64 " free%s without an allocation in the trace, %" PRIu64
                " allocation%s without a free before the address was reused\n",
                result->unknown_frees, cw_cli_plural(result->unknown_frees), result->doubled,
                cw_cli_plural(result->doubled));
    fputc('\n', out);
}

static void print_oom(const struct cw_replay_result *result, const char *trace, FILE *out)
{
    const struct cw_replay_oom *oom = &result->oom;

    if (result->ooms == 0) {
        fprintf(out, "  fits           yes\n");
        return;
    }
    fprintf(out,
            "  fits           no: %s:%" PRIu64 ": %s requested, %s; %" PRIu64
            " request%s failed in total\n",
            trace, oom->line, size_of(oom->asked).text, cause_of(oom), result->ooms,
            cw_cli_plural(result->ooms));
    fprintf(out, "  at that line   live %s, held %s, free %s, largest free piece %s\n",
            size_of(oom->live).text, size_of(oom->held).text, size_of(oom->free).text,
            size_of(oom->largest).text);
}

static void print_device(const struct cw_replay_device *device, unsigned number, FILE *out)
{
    char name[24];

    if (!device->is_used)
        return;
    if (number == CW_DEVICE_HOST)
        snprintf(name, sizeof(name), "host");
    else
        snprintf(name, sizeof(name), "device %u", number);
    fprintf(out, "  %-14s peak live %s, held %s, unused %s\n", name,
            size_of(device->peak_live).text, size_of(device->peak_held).text,
            size_of(device->peak_unused).text);
    if (number != CW_DEVICE_HOST)
        fprintf(out, "  %-14s largest free piece at worst %s of %s free\n", "",
                size_of(device->least_largest).text, size_of(device->free_then).text);
}

static void print_one(const struct cw_policies *policies, FILE *out)
{
    const struct cw_policy *policy = &policies->policy[0];
    const struct cw_replay_result *result = &policy->result;
    struct cw_replay_device all = all_devices(result);

    fprintf(out, "%s", policy->name);
    if (cw_policy_ceiling(policies, policy) < policies->device_bytes)
        fprintf(out, ", limit %s", size_of(cw_policy_ceiling(policies, policy)).text);
    fputc('\n', out);
    print_oom(result, policies->shown, out);
    for (unsigned i = 0; i < CW_DEVICES; i++)
        print_device(&result->device[i], i, out);
    fprintf(out,
            "  pool           served %" PRIu64 " of %" PRIu64 " request%s (%s), released %" PRIu64
            " block%s\n",
            result->hits, result->poolable, cw_cli_plural(result->poolable),
            percent_of(result->hits, result->poolable).text, result->given_back,
            cw_cli_plural(result->given_back));
    fprintf(out, "  efficiency     %s, peak fragmentation %s\n",
            percent_of(all.asked, all.given).text, percent_of(fragments(&all), all.peak_held).text);
    fprintf(out,
            "  driver         %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64
            " refused, %" PRIu64 " wait%s, %" PRIu64 " call%s for events\n",
            result->calls.allocs, cw_cli_plural(result->calls.allocs), result->calls.frees,
            cw_cli_plural(result->calls.frees), result->calls.refused, result->calls.waits,
            cw_cli_plural(result->calls.waits), result->calls.events,
            cw_cli_plural(result->calls.events));
    fprintf(out, "  live at end    %s in %" PRIu64 " block%s\n", size_of(result->left_bytes).text,
            result->left_blocks, cw_cli_plural(result->left_blocks));
}

static void print_row(const struct cw_policy *policy, uint64_t unbounded, FILE *out)
{
    const struct cw_replay_result *result = &policy->result;
    struct cw_replay_device all = all_devices(result);
    char line[24] = "-";

    if (result->ooms > 0)
        snprintf(line, sizeof(line), "%" PRIu64, result->oom.line);
    fprintf(out,
            "%-12s %-4s %10s %8" PRIu64 " %11s %11s %11s %8s %12s %10s %13s %10" PRIu64
            " %10" PRIu64 " %10" PRIu64 "\n",
            policy->name, result->ooms > 0 ? "no" : "yes", line, result->ooms,
            size_of(all.peak_live).text, size_of(all.peak_held).text, size_of(all.peak_unused).text,
            percent_of(result->hits, result->poolable).text, percent_of(all.hits, unbounded).text,
            percent_of(all.asked, all.given).text, percent_of(fragments(&all), all.peak_held).text,
            result->calls.allocs, result->calls.frees, result->given_back);
}

void cw_replay_print_text(const struct cw_policies *policies, FILE *out)
{
    print_trace(policies, out);
    if (policies->count == 1) {
        print_one(policies, out);
        return;
    }
    fprintf(out, "%-12s %-4s %10s %8s %11s %11s %11s %8s %12s %10s %13s %10s %10s %10s\n", "policy",
            "fits", "first line", "failed", "peak live", "peak held", "unused", "served",
            "of unbounded", "efficiency", "fragmentation", "allocated", "freed", "released");
    for (unsigned i = 0; i < policies->count; i++)
        print_row(&policies->policy[i], unbounded_hits(policies), out);
}

/* ---- JSON ---- */

static void json_string(const char *text, FILE *out)
{
    char buf[8192];
    struct cw_out json;

    cw_out_init(&json, -1, buf, sizeof(buf));
    cw_out_json_string(&json, text, strnlen(text, 1024));
    fwrite(buf, 1, json.len, out);
}

static void json_oom(const struct cw_replay_oom *oom, FILE *out)
{
    fprintf(out,
            "{\"line\": %" PRIu64 ", \"device\": %u, \"cause\": \"%s\", \"asked_bytes\": %" PRIu64
            ", \"live_bytes\": %" PRIu64 ", \"held_bytes\": %" PRIu64 ", \"free_bytes\": %" PRIu64
            ", \"largest_free_bytes\": %" PRIu64 "}",
            oom->line, oom->device,
            oom->cause == CW_CAUSE_LIMIT      ? "limit"
            : oom->cause == CW_CAUSE_MIN_FREE ? "min_free"
            : oom->free >= oom->asked         ? "fragmentation"
                                              : "device",
            oom->asked, oom->live, oom->held, oom->free, oom->largest);
}

static void json_devices(const struct cw_replay_result *result, FILE *out)
{
    const char *separator = "";

    fprintf(out, "\"devices\": [");
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_replay_device *device = &result->device[i];

        if (!device->is_used)
            continue;
        fprintf(out, "%s{\"device\": ", separator);
        if (i == CW_DEVICE_HOST)
            fprintf(out, "\"host\"");
        else
            fprintf(out, "%u", i);
        fprintf(out,
                ", \"peak_live_bytes\": %" PRIu64 ", \"peak_held_bytes\": %" PRIu64
                ", \"peak_unused_bytes\": %" PRIu64 ", \"limit_bytes\": %" PRIu64
                ", \"least_largest_free_bytes\": %" PRIu64 ", \"free_bytes_then\": %" PRIu64
                ", \"poolable\": %" PRIu64 ", \"served\": %" PRIu64
                ", \"requested_bytes_total\": %" PRIu64 ", \"allocated_bytes_total\": %" PRIu64 "}",
                device->peak_live, device->peak_held, device->peak_unused, device->limit,
                device->least_largest, device->free_then, device->requests, device->hits,
                device->asked, device->given);
        separator = ", ";
    }
    fprintf(out, "]");
}

static void json_curve(const struct cw_replay_result *result, FILE *out)
{
    const struct cw_curve *curve = &result->curve;

    fprintf(out, "\"curve\": {\"unit\": \"%s\", \"span\": %" PRIu64 ", \"live_bytes\": [",
            result->has_times ? "ns" : "event", curve->span);
    for (uint32_t i = 0; i < curve->count; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", curve->point[i].live);
    fprintf(out, "], \"held_bytes\": [");
    for (uint32_t i = 0; i < curve->count; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", curve->point[i].held);
    fprintf(out, "]}");
}

static void json_share(const char *key, uint64_t part, uint64_t whole, FILE *out)
{
    if (whole != 0)
        fprintf(out, "\"%s\": %.6f, ", key, (double)part / (double)whole);
    else
        fprintf(out, "\"%s\": null, ", key);
}

static void json_policy(const struct cw_policy *policy, uint64_t unbounded, FILE *out)
{
    const struct cw_replay_result *result = &policy->result;
    struct cw_replay_device all = all_devices(result);

    fprintf(out, "    {\"policy\": \"%s\", \"fits\": %s, \"failed\": %" PRIu64 ",\n", policy->name,
            result->ooms ? "false" : "true", result->ooms);
    fprintf(out, "     \"first_failure\": ");
    if (result->ooms > 0)
        json_oom(&result->oom, out);
    else
        fprintf(out, "null");
    fprintf(out,
            ",\n     \"poolable\": %" PRIu64 ", \"served\": %" PRIu64 ", \"given_back\": %" PRIu64
            ",\n     \"driver\": {\"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
            ", \"refused\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"event_calls\": %" PRIu64
            "},\n     \"left_bytes\": %" PRIu64 ", \"left_blocks\": %" PRIu64 ",\n     ",
            result->poolable, result->hits, result->given_back, result->calls.allocs,
            result->calls.frees, result->calls.refused, result->calls.waits, result->calls.events,
            result->left_bytes, result->left_blocks);
    json_share("served_of_unbounded", all.hits, unbounded, out);
    json_share("efficiency_total", all.asked, all.given, out);
    json_share("fragmentation", fragments(&all), all.peak_held, out);
    fprintf(out, "\n     ");
    json_devices(result, out);
    fprintf(out, ",\n     ");
    json_curve(result, out);
    fprintf(out, "}");
}

void cw_replay_print_json(const struct cw_policies *policies, FILE *out)
{
    const struct cw_replay_result *result = &policies->policy[0].result;

    fprintf(out, "{\"schema\": \"cuwarden-replay/1\",\n  \"trace\": {\"file\": ");
    json_string(policies->trace, out);
    fprintf(out,
            ", \"events\": %" PRIu64 ", \"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
            ", \"failures\": %" PRIu64 ", \"unknown_frees\": %" PRIu64
            ", \"unseen_frees\": %" PRIu64 ", \"duration_ns\": %" PRIu64 ", \"is_cut\": %s},\n",
            result->events, result->allocs, result->frees, result->failures, result->unknown_frees,
            result->doubled, result->has_times ? result->span_ns : 0,
            result->is_cut ? "true" : "false");
    fprintf(out, "  \"device_bytes\": %" PRIu64 ",\n  \"policies\": [\n", policies->device_bytes);
    for (unsigned i = 0; i < policies->count; i++) {
        json_policy(&policies->policy[i], unbounded_hits(policies), out);
        fprintf(out, "%s\n", i + 1 < policies->count ? "," : "");
    }
    fprintf(out, "  ]}\n");
}
