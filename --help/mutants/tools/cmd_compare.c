/* `onelaunch compare`: how far apart the tensors of two safetensors files are.
 *
 * Floats (F16, BF16, F32, F64) are compared in ulp, everything else byte by byte. With --max-ulp 0, the default, every bit must
 * be equal; from 1 on, zeros of different sign and NaNs with different bits are reported but are no difference, a NaN
 * against a number always is one. */
#include "checkpoint.h"
#include "cli.h"
#include "commands.h"
#include "floats.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *path[2];
    const char *glob;
    int64_t max_ulp;
};

static const struct argp_option option_table[] = {
    { "max-ulp", 'u', "N", 0, "Allow differences of up to N ulp (default: 0, every bit equal)", 0 },
    { "match", 'm', "GLOB", 0, "Only tensors whose name matches", 0 },
    { 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    switch (key) {
    case 'm': options->glob = argument; return 0;
    case 'u':
        if (!cli_parse_int(argument, 0, INT64_MAX, &options->max_ulp)) {
            argp_error(state, "--max-ulp %s: expected a number from 0 on", cli_printable(argument));
        }
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2) {
            argp_error(state, "unexpected argument '%s'", cli_printable(argument));
        }
        options->path[state->arg_num] = argument;
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2) {
            argp_error(state, "two files are needed");
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Two tensors ----------------------------------------------------------------------------------------------- */

enum { N_BINS = 7 };
static const struct bin {
    uint64_t up_to;
    const char *name;
} bins[N_BINS] = { { 0, "0" }, { 1, "1" }, { 2, "2" }, { 4, "3-4" }, { 16, "5-16" }, { 256, "17-256" }, { UINT64_MAX, ">256" } };

struct distance {
    int64_t count[N_BINS];
    uint64_t worst;
    int64_t worst_index;
    int64_t n_nan;                     /* a NaN against a number */
    int64_t n_nan_bits;                /* two NaNs with different bits */
    int64_t n_zero_sign;
    int64_t first_nan;                 /* index of the first NaN against a number */
};

static struct distance measure(const float_format *format, const st_tensor *x, const st_tensor *y) {
    struct distance distance = { 0 };
    for (int64_t i = 0; i < x->n_elements; i++) {
        uint64_t left = float_load(format, x->data, i), right = float_load(format, y->data, i), ulp = 0;
        bool left_nan = float_is_nan(format, left), right_nan = float_is_nan(format, right);
        if (left_nan != right_nan) {
            distance.first_nan = distance.n_nan++ ? distance.first_nan : i;
            continue;
        }
        if (left_nan) {
            distance.n_nan_bits += left != right;
        } else if (left != right) {
            ulp = float_ulp_distance(format, left, right);
            distance.n_zero_sign += ulp == 0;
        }
        int bin = 0;
        while (ulp > bins[bin].up_to) {
            bin++;
        }
        distance.count[bin]++;
        if (ulp > distance.worst) {
            distance.worst = ulp;
            distance.worst_index = i;
        }
    }
    return distance;
}

/* "[0, 3, 1]": where element `index` is. */
static const char *place_of(const st_tensor *tensor, int64_t index, char text[CLI_SHAPE_BYTES]) {
    int64_t place[OL_MAX_RANK] = { 0 };
    if (tensor->rank > OL_MAX_RANK) {
        snprintf(text, CLI_SHAPE_BYTES, "element %" PRId64, index);
        return text;
    }
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        place[axis] = index % tensor->shape[axis];
        index /= tensor->shape[axis];
    }
    return cli_shape(tensor->rank, place, text);
}

static void print_pair(const float_format *format, const st_tensor *x, const st_tensor *y, int64_t index) {
    char text[CLI_SHAPE_BYTES];
    uint64_t left = float_load(format, x->data, index), right = float_load(format, y->data, index);
    int digits = format->bits / 4, precision = format->bits == 64 ? 17 : format->bits == 32 ? 9 : 5;
    printf("at %s: %.*g (%0*" PRIx64 ") against %.*g (%0*" PRIx64 ")\n", place_of(x, index, text), precision,
           float_value(format, left), digits, left, precision, float_value(format, right), digits, right);
}

static void print_distance(const float_format *format, const st_tensor *x, const st_tensor *y, const struct distance *distance) {
    printf("    ulp");
    for (int i = 0; i < N_BINS; i++) {
        printf(" %11s", bins[i].name);
    }
    printf("\n       ");
    for (int i = 0; i < N_BINS; i++) {
        printf(" %11" PRId64, distance->count[i]);
    }
    putchar('\n');
    if (distance->worst > 0) {
        printf("    worst: %" PRIu64 " ulp ", distance->worst);
        print_pair(format, x, y, distance->worst_index);
    }
    if (distance->n_nan > 0) {
        printf("    a NaN against a number: %" PRId64 ", the first ", distance->n_nan);
        print_pair(format, x, y, distance->first_nan);
    }
    if (distance->n_nan_bits > 0) {
        printf("    two NaNs with different bits: %" PRId64 "\n", distance->n_nan_bits);
    }
    if (distance->n_zero_sign > 0) {
        printf("    zeros of different sign: %" PRId64 "\n", distance->n_zero_sign);
    }
}

static void print_name(const st_tensor *tensor) {
    char text[CLI_SHAPE_BYTES];
    cli_put(stdout, tensor->name);
    printf("  ");
    cli_put(stdout, tensor->dtype_name);
    printf(" %s", cli_shape(tensor->rank, tensor->shape, text));
}

enum verdict { EQUAL, WITHIN, BEYOND };

/* Elements that differ, of tensors that are not floats. Sub-byte elements count by the byte. */
static int64_t count_unequal(const st_tensor *x, const st_tensor *y) {
    uint64_t size = x->element_bits >= 8 ? (uint64_t)x->element_bits / 8 : 1;
    int64_t n = 0;
    for (uint64_t at = 0; at + size <= x->n_bytes; at += size) {
        n += memcmp(x->data + at, y->data + at, size) != 0;
    }
    return n;
}

static bool same_shape(const st_tensor *x, const st_tensor *y) {
    return x->rank == y->rank && memcmp(x->shape, y->shape, sizeof x->shape) == 0 && x->n_elements == y->n_elements;
}

static enum verdict compare_tensors(const st_tensor *x, const st_tensor *y, uint64_t max_ulp) {
    const float_format *format = float_format_named(x->dtype_name);
    char text[CLI_SHAPE_BYTES];
    print_name(x);
    if (strcmp(x->dtype_name, y->dtype_name) != 0 || !same_shape(x, y)) {
        printf(" against ");
        cli_put(stdout, y->dtype_name);
        printf(" %s\n", cli_shape(y->rank, y->shape, text));
        return BEYOND;
    }
    if (x->n_bytes != y->n_bytes) {                /* only where the dtype, and with it the length, is not known */
        printf("  %" PRIu64 " bytes against %" PRIu64 "\n", x->n_bytes, y->n_bytes);
        return BEYOND;
    }
    if (x->n_bytes == 0 || memcmp(x->data, y->data, x->n_bytes) == 0) {
        printf("  equal\n");
        return EQUAL;
    }
    if (!format) {
        printf("  %" PRId64 " of %" PRId64 " elements differ\n", count_unequal(x, y), x->n_elements);
        return BEYOND;
    }
    struct distance distance = measure(format, x, y);
    putchar('\n');
    print_distance(format, x, y, &distance);
    return distance.n_nan > 0 || distance.worst > max_ulp || max_ulp == 0 ? BEYOND : WITHIN;
}

/* ---- Two files ------------------------------------------------------------------------------------------------- */

struct tally {
    int64_t n[3];                      /* by verdict */
};

/* The names of one side; those of the second only where the first has them not. */
static bool compare_side(checkpoint *const set[2], int side, const struct options *options, struct tally *tally,
                         st_error *error) {
    for (size_t i = 0; i < checkpoint_count(set[side]); i++) {
        const char *name = checkpoint_name(set[side], i);
        checkpoint_tensor found[2];
        if (options->glob && fnmatch(options->glob, name, 0) != 0) {
            continue;
        }
        if (!checkpoint_has(set[1 - side], name)) {
            cli_put(stdout, name);
            printf("  only in ");
            cli_put(stdout, options->path[side]);
            putchar('\n');
            tally->n[BEYOND]++;
        } else if (side == 0) {
            if (!checkpoint_find(set[0], name, &found[0], error) || !checkpoint_find(set[1], name, &found[1], error)) {
                return false;
            }
            tally->n[compare_tensors(found[0].tensor, found[1].tensor, (uint64_t)options->max_ulp)]++;
        }
    }
    return true;
}

int cmd_compare(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .args_doc = "A B",
        .doc = "Compares two safetensors files (or checkpoints) tensor by tensor, in units in the last place."
               "\vFor each tensor: how many elements differ by how much, the worst one, NaN and sign differences. "
               "Exit code 1 if anything exceeds --max-ulp; other dtypes than floats must be equal.",
    };
    struct options options = { 0 };
    if (!cli_arguments(&argp, argc, argv, &options)) {
        return CLI_USAGE;
    }
    checkpoint *set[2] = { 0 };
    struct tally tally = { 0 };
    st_error error;
    int code = CLI_USAGE;
    if (!checkpoint_open(options.path[0], &set[0], &error) || !checkpoint_open(options.path[1], &set[1], &error) ||
        !compare_side(set, 0, &options, &tally, &error) || !compare_side(set, 1, &options, &tally, &error)) {
        cli_error(argv[0], "%s", error.text);
    } else if (tally.n[EQUAL] + tally.n[WITHIN] + tally.n[BEYOND] == 0 && options.glob) {
        cli_error(argv[0], "no tensor matches %s", options.glob);
    } else {
        printf("%" PRId64 " tensor%s equal, %" PRId64 " within %" PRId64 " ulp, %" PRId64 " beyond\n", tally.n[EQUAL], tally.n[EQUAL] == 1 ? "" : "s",
               tally.n[WITHIN], options.max_ulp, tally.n[BEYOND]);
        code = tally.n[BEYOND] > 0 ? CLI_MISS : CLI_OK;
    }
    checkpoint_close(set[0]);
    checkpoint_close(set[1]);
    return code;
}
