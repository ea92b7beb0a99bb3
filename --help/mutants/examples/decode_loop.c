/* An engine's loop over one gated-delta layer: three sequences on a paged pool, prefilled together, then decoded twice: token by token, and
 * speculatively, four tokens a step of which some are taken back. Each step is one launch of the mixer: convolution, recurrence, gated norm.
 *
 * A sequence's next token is a hash of the output's bits, so a single bit that differs anywhere makes another text. Rolling back is naming
 * numbers: which column of slots the state is in (accepted_tokens), how many inputs the window forgets (window_dropped). Nothing is copied. */
#include <onelaunch_gated_delta.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HK = 2, R = 2, HV = HK * R, K = 64, V = 64, W = 4 };                         /* the layer */
enum { QKV = 2 * HK * K + HV * V, ROW = QKV + HV * V + 2 * HV };                     /* a token's projection: q, k, v, z, b, a */
enum { N = 3, T = 4, TOKENS = 64, PROMPT = 7, MOST = 2 * TOKENS + PROMPT + T, VOCABULARY = 97 };
enum { COLUMNS = W - 1 + T - 1, PAGES = N * T + 1 };                                 /* page 0 is nobody's */

static ol_error error;

static void check(ol_status status)
{
    if (status == OL_OK)
        return;
    fprintf(stderr, "%s: %s\n", error.operation, error.description);
    exit(EXIT_FAILURE);
}

static uint32_t hash(uint32_t x) { x = (x ^ (x >> 16)) * 0x7feb352du; x = (x ^ (x >> 15)) * 0x846ca68bu; return x ^ (x >> 16); }
static float number(uint32_t x) { return (float)(hash(x) >> 8) * 0x1p-23f - 1; }                   /* -1 to 1 */
static uint16_t bfloat16(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return (uint16_t)(bits >> 16); }

/* What the model's weights would be. */
static uint16_t projections[VOCABULARY][ROW], conv_weight[QKV][W], dt_bias[HV];
static float A_log[HV], norm_weight[V];

/* An engine: its memory, and where each sequence is. */
typedef struct engine {
    ol_gated_delta_mixer *mixer;
    float states[PAGES][HV][V][K];
    uint16_t windows[N][COLUMNS][QKV];                                              /* channels last, as vLLM has them */
    uint16_t rows[N * (PROMPT + T)][ROW], outputs[N * (PROMPT + T)][HV][V];         /* of a step */
    int text[N][MOST], length[N];                                                   /* the last token's output is not known yet */
    uint64_t digest[N];                                                             /* of all outputs that were kept */
    int64_t pages[N][T], accepted[N], dropped[N];
    int n_steps, n_drafted, n_accepted;
} engine;

static ol_tensor view(void *data, ol_dtype dtype, int32_t rank, const int64_t *shape) { return ol_tensor_contiguous(data, dtype, rank, shape); }

/* All tensors of a step of n_tokens rows but those that say where sequences are. */
static ol_gated_delta_mixer_arguments arguments(engine *e, const ol_gated_delta_options *layer, int64_t n_tokens)
{
    ol_gated_delta_mixer_arguments a;
    ol_gated_delta_arguments *r = &a.recurrence;
    memset(&a, 0, sizeof a);
    ol_tensor qkvz = view(e->rows, OL_BFLOAT16, 2, (int64_t[]){ n_tokens, QKV + HV * V }), ba = view(&e->rows[0][QKV + HV * V], OL_BFLOAT16, 2, (int64_t[]){ n_tokens, 2 * HV });
    qkvz.strides[0] = ba.strides[0] = ROW;
    ol_tensor weight = view(conv_weight, OL_BFLOAT16, 2, (int64_t[]){ QKV, W }), window = view(e->windows, OL_BFLOAT16, 3, (int64_t[]){ N, QKV, COLUMNS });
    window.strides[1] = 1;                                                          /* [slots, columns, C] as [slots, C, columns] */
    window.strides[2] = QKV;
    check(ol_gated_delta_mixer_split(&qkvz, -1, OL_MIXER_JOINT, layer, &r->query, &r->key, &r->value, &a.gate, &error));
    check(ol_gated_delta_mixer_split(&weight, 0, OL_MIXER_JOINT, layer, &a.query.weight, &a.key.weight, &a.value.weight, NULL, &error));
    check(ol_gated_delta_mixer_split(&window, 1, OL_MIXER_JOINT, layer, &a.query.window, &a.key.window, &a.value.window, NULL, &error));
    check(ol_gated_delta_split(&ba, OL_GATE_HALVES, 0, &r->update, &r->decay, &error));
    r->decay_rate = view(A_log, OL_FLOAT32, 1, (int64_t[]){ HV });
    r->decay_bias = view(dt_bias, OL_BFLOAT16, 1, (int64_t[]){ HV });
    r->output = view(e->outputs, OL_BFLOAT16, 3, (int64_t[]){ n_tokens, HV, V });
    r->state = view(e->states, OL_FLOAT32, 4, (int64_t[]){ PAGES, HV, V, K });
    a.norm_weight = view(norm_weight, OL_FLOAT32, 1, (int64_t[]){ V });
    return a;
}

/* Keeps the output of a row for sequence i; the token that follows it. */
static int keep(engine *e, int i, int row)
{
    const uint16_t *o = &e->outputs[row][0][0];
    for (int k = 0; k < HV * V; k++)
        e->digest[i] = (e->digest[i] ^ o[k]) * 0x100000001b3ull;
    return (int)((e->digest[i] >> 33) % VOCABULARY);
}

/* The prompts, of different lengths, in one call: nothing lies in the pool before. */
static void prefill(engine *e, const ol_gated_delta_options *layer)
{
    int32_t starts[N + 1] = { 0 };
    uint8_t has_initial[N] = { 0 };
    int64_t slots[N], window_slots[N];
    for (int i = 0; i < N; i++) {
        for (int t = 0; t < PROMPT - i; t++)
            memcpy(e->rows[starts[i] + t], projections[e->text[i][t] = (int)(hash((uint32_t)(31 * i + t)) % VOCABULARY)], sizeof *e->rows);
        starts[i + 1] = starts[i] + PROMPT - i;
        for (int t = 0; t < T; t++)
            e->pages[i][t] = 1 + (7 * (i * T + t)) % (N * T);                       /* any order */
        slots[i] = e->pages[i][0];
        window_slots[i] = i;
    }
    ol_gated_delta_mixer_arguments a = arguments(e, layer, starts[N]);
    a.recurrence.read_slots = view(slots, OL_INT64, 1, (int64_t[]){ N });
    a.window_read_slots = view(window_slots, OL_INT64, 1, (int64_t[]){ N });
    a.recurrence.cu_seqlens = view(starts, OL_INT32, 1, (int64_t[]){ N + 1 });
    a.recurrence.has_initial_state = view(has_initial, OL_BOOL, 1, (int64_t[]){ N });
    check(ol_gated_delta_mixer_step(e->mixer, NULL, &a, &error));
    for (int i = 0; i < N; i++) {
        e->length[i] = PROMPT - i;
        e->text[i][e->length[i]] = keep(e, i, starts[i + 1] - 1);
        e->length[i]++;
        e->accepted[i] = 1;                                                         /* the state is in column 0 */
    }
}

/* The last token of each sequence and n - 1 drafts after it, in one launch; then those that turn out right are kept, and the first other one. */
static void step(engine *e, const ol_gated_delta_options *layer, int n, int drafts[N][T])
{
    int64_t window_slots[N];
    for (int i = 0; i < N; i++) {
        window_slots[i] = i;
        for (int t = 0; t < n; t++)
            memcpy(e->rows[i * n + t], projections[t ? drafts[i][t] : e->text[i][e->length[i] - 1]], sizeof *e->rows);
    }
    ol_gated_delta_mixer_arguments a = arguments(e, layer, N * n);
    a.recurrence.read_slots = a.recurrence.write_slots = view(e->pages, OL_INT64, 2, (int64_t[]){ N, T });
    a.recurrence.accepted_tokens = view(e->accepted, OL_INT64, 1, (int64_t[]){ N });
    a.window_read_slots = view(window_slots, OL_INT64, 1, (int64_t[]){ N });
    a.window_dropped = view(e->dropped, OL_INT64, 1, (int64_t[]){ N });
    check(ol_gated_delta_mixer_step(e->mixer, NULL, &a, &error));
    for (int i = 0; i < N; i++) {
        int kept = 0, next;
        do {
            next = keep(e, i, i * n + kept);
            e->text[i][e->length[i]++] = next;
            kept++;
        } while (kept < n && next == drafts[i][kept] && e->length[i] < TOKENS);
        e->accepted[i] = kept;
        e->dropped[i] = n - kept;
        e->n_drafted += n - 1;
        e->n_accepted += kept - 1;
    }
    e->n_steps++;
}

static void load_weights(void)
{
    uint32_t seed = 1;
    for (int t = 0; t < VOCABULARY; t++)
        for (int c = 0; c < ROW; c++)
            projections[t][c] = bfloat16(2 * number(seed++));
    for (int c = 0; c < QKV; c++)
        for (int w = 0; w < W; w++)
            conv_weight[c][w] = bfloat16(number(seed++));
    for (int h = 0; h < HV; h++) {
        A_log[h] = 2 * number(seed++);
        dt_bias[h] = bfloat16(number(seed++) - 2);
    }
    for (int v = 0; v < V; v++)
        norm_weight[v] = 1 + 0.1f * number(seed++);
}

static int done(const engine *e)
{
    for (int i = 0; i < N; i++)
        if (e->length[i] < TOKENS)
            return 0;
    return 1;
}

int main(void)
{
    static engine plain, fast;
    ol_device *device;
    const ol_gated_delta_mixer_options options = {                                  /* Qwen3.5 in small */
        .recurrence = { .key_heads = HK, .value_heads = HV, .key_dim = K, .value_dim = V, .activation_dtype = OL_BFLOAT16, .norm = OL_DELTA_NORM_RSQRT,
                        .gates = { .sum = OL_GATE_SUM_FLOAT32 } },
    };
    load_weights();
    check(ol_device_cpu(NULL, &device, &error));
    check(ol_gated_delta_mixer_create(device, &options, &plain.mixer, &error));
    fast.mixer = plain.mixer;

    prefill(&plain, &options.recurrence);
    while (!done(&plain))
        step(&plain, &options.recurrence, 1, NULL);

    prefill(&fast, &options.recurrence);
    while (!done(&fast)) {
        int drafts[N][T];                                                           /* a draft model that is right four times of five */
        for (int i = 0; i < N; i++)
            for (int t = 1; t < T; t++)
                drafts[i][t] = hash((uint32_t)(fast.length[i] * N * T + i * T + t)) % 5 ? plain.text[i][fast.length[i] - 1 + t] : 0;
        step(&fast, &options.recurrence, T, drafts);
    }

    int same_text = 1;
    for (int i = 0; i < N; i++)
        for (int t = 0; t < TOKENS; t++)
            same_text &= plain.text[i][t] == fast.text[i][t];
    printf("plain: %d steps; speculative: %d steps, %d of %d drafts accepted, the rest rolled back\n", plain.n_steps, fast.n_steps, fast.n_accepted, fast.n_drafted);
    printf("%llu launches; %d tokens of each of %d sequences: %s\n", (unsigned long long)ol_device_launches(device), TOKENS, N,
           same_text ? "the same text, bit for bit" : "another text");
    ol_gated_delta_mixer_destroy(plain.mixer);
    ol_device_destroy(device);
    return same_text ? EXIT_SUCCESS : EXIT_FAILURE;
}
