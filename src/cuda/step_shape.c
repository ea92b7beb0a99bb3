/* How a step is divided among threads, warps and blocks. Only speed depends on it.
 *
 * A state is read once and written once, so a step is as fast as memory if enough bytes are on their way: a multiprocessor needs
 * some 32 KiB of them at a time. MANY has them in few threads, each of which holds up to 64 elements; what a block computes once, k^, q^ and
 * the gates, is shared by most rows then. Few sequences do not fill a GPU that way: FEW spreads their rows over four times the threads. */
#include "cuda/step.h"

#include "dtype.h"

#define MOST_ELEMENTS 64                 /* of a thread: in registers, beside some 60 others; */
#define MOST_BESIDE_MORE 32              /* or beside more, of a decay per channel or float32 activations; or so that more threads fit */
#define MOST_WITH_DECAYS 48              /* elements and decays per channel of a thread, where more than 16 warps are to fit */
#define FEW_ELEMENTS 16
#define MOST_WARPS 4                     /* of a block: eight are up to a fifth slower on an H200, two up to a tenth */

static int most_elements(const ol_gated_delta_options *o)
{
    return o->decay_per_channel || o->activation_dtype == OL_FLOAT32 ? MOST_BESIDE_MORE : MOST_ELEMENTS;
}

/* Elements of up to 16 bytes that divide an axis. */
static int piece_of(int size, int extent)
{
    int piece = 16 / size;
    while (extent % piece)
        piece /= 2;
    return piece;
}

/* [V, K]: a lane's partial sums are one piece. */
static void value_key(const ol_gated_delta_options *o, int size, int most, step_variant *many, step_variant *few)
{
    int piece = piece_of(size, o->key_dim), chunks = (o->key_dim + 31) / 32;
    while (piece > 4 && chunks * piece > most)
        piece /= 2;
    if (piece * size < 4)
        return;
    int lanes = 32 / piece, rows = 1;
    while (rows < lanes && 2 * rows * chunks * piece <= most && 2 * rows * piece <= o->value_dim)
        rows *= 2;
    *many = (step_variant){ .lanes = lanes, .rows = rows > 4 ? 4 : rows, .wide = 1, .alignment = piece * size, .n_blocks = 2 };
    *few = (step_variant){ .lanes = lanes, .rows = lanes == 32 ? 2 : 1, .wide = 1, .alignment = piece * size, .n_blocks = 2 };
}

/* [K, V]: a thread's rows are one piece. */
static void key_value(const ol_gated_delta_options *o, int size, int most, step_variant *many, step_variant *few)
{
    int rows = piece_of(size, o->value_dim), chunks = (o->key_dim + 31) / 32, lanes = 8;
    if (rows * size < 4)
        return;
    while (lanes < 32 && rows * chunks * 32 / lanes > most)
        lanes *= 2;
    *many = (step_variant){ .lanes = lanes, .rows = rows, .wide = 1, .alignment = rows * size, .n_blocks = 2 };
    while (lanes < 16 && rows * chunks * 32 / lanes > FEW_ELEMENTS)
        lanes *= 2;
    *few = (step_variant){ .lanes = lanes, .rows = rows, .wide = 1, .alignment = rows * size, .n_blocks = 2 };
}

void step_variants_within(const ol_gated_delta_options *o, int most, step_variant variants[STEP_VARIANTS])
{
    int size = (int)dtype_sizes[o->state_dtype];
    for (int i = 0; i < STEP_VARIANTS; i++)
        variants[i] = (step_variant){ 0 };
    if (o->state_layout == OL_DELTA_KEY_VALUE)
        key_value(o, size, most, &variants[STEP_MANY], &variants[STEP_FEW]);
    else
        value_key(o, size, most, &variants[STEP_MANY], &variants[STEP_FEW]);
    variants[STEP_ANY] = (step_variant){ .lanes = 8, .rows = 1, .wide = 0, .alignment = 1, .n_blocks = 2 };
    for (int i = 0; i < STEP_VARIANTS; i++)
        variants[i].groups = 1;
}

/* Of a decode kernel, which needs some 40 registers beside the state's: as many blocks as these let a multiprocessor have. On an H200 half as
 * many elements a thread, and so twice the threads, are up to a tenth faster than in the kernels for all calls. */
static step_variant decode_many(const ol_gated_delta_options *o, const step_variant *many)
{
    int size = (int)dtype_sizes[o->state_dtype], chunks = (o->key_dim + 31) / 32;
    step_variant v = *many;
    if (o->state_layout == OL_DELTA_KEY_VALUE) {
        while (v.lanes > 8 && v.rows * 32 / v.lanes * size < 32 && 2 * v.rows * chunks * 32 / v.lanes <= MOST_ELEMENTS)
            v.lanes /= 2;                                    /* neighbours of a sector of 32 bytes, which is what memory reads at least */
    } else if (v.lanes <= 8) {
        v.lanes = 8;
        v.alignment = 4 * size;
        v.rows = 2 * chunks * 4 <= MOST_BESIDE_MORE ? 2 : 1;
    }
    int elements = v.rows * chunks * 32 / v.lanes, decays = o->decay_per_channel ? chunks * 32 / v.lanes : 0;
    int is_full = elements > MOST_BESIDE_MORE || elements + decays > MOST_WITH_DECAYS;
    v.n_blocks = is_full ? 4 : size == 4 || o->activation_dtype == OL_FLOAT32 ? 6 : 8;
    return v;
}

static step_variant decode_few(const ol_gated_delta_options *o, const step_variant *few)
{
    step_variant v = *few;
    if (o->state_layout == OL_DELTA_VALUE_KEY && v.lanes == 4 && !o->decay_per_channel) {        /* of which blocks of fewer rows compute as many */
        v.lanes = 8;
        v.alignment /= 2;
    }
    v.n_blocks = 4;
    return v;
}

void step_variants(const ol_gated_delta_options *o, step_variant variants[STEP_VARIANTS])
{
    step_variants_within(o, most_elements(o), variants);
    if (!variants[STEP_MANY].lanes)
        return;
    variants[STEP_DECODE_MANY] = decode_many(o, &variants[STEP_MANY]);
    variants[STEP_DECODE_FEW] = decode_few(o, &variants[STEP_FEW]);
}

/* Blocks of at most `most` warps for a head of n warps, evenly. */
static step_shape divide(int variant, uint32_t n, uint32_t most)
{
    uint32_t n_parts = (n + most - 1) / most;
    return (step_shape){ variant, n_parts, (n + n_parts - 1) / n_parts };
}

uint32_t step_most_warps(const function_limits *limits, uint32_t most)
{
    uint32_t n = limits->max_threads / 32;
    return n < 1 ? 1 : n > most ? most : n;
}

step_shape step_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int is_aligned,
                       int decodes, int64_t n_items)
{
    int variant = STEP_ANY;
    int64_t n_multiprocessors = limits[STEP_ANY].n_multiprocessors;
    if (is_aligned && variants[STEP_MANY].lanes) {
        int64_t rows = step_warp_rows(&variants[STEP_FEW]), n_warps = (value_dim + rows - 1) / rows;
        variant = n_items <= STEP_FEW_WARPS_PER_MULTIPROCESSOR * n_multiprocessors / n_warps ? STEP_FEW : STEP_MANY;
    }
    if (decodes && variant != STEP_ANY)
        variant = variant == STEP_MANY ? STEP_DECODE_MANY : STEP_DECODE_FEW;
    uint32_t rows = (uint32_t)step_warp_rows(&variants[variant]), n_warps = ((uint32_t)value_dim + rows - 1) / rows, most = step_most_warps(&limits[variant], MOST_WARPS);
    /* Too few blocks for the multiprocessors: smaller ones, of two warps at least, since one prepares q and k and another the gates. */
    while (most > 2 && n_items < n_multiprocessors && n_items * ((n_warps + most - 1) / most) * 4 < 3 * n_multiprocessors)
        most /= 2;
    return divide(variant, n_warps, most);
}
