/* The reports' rows on gates, as options, inputs and expected bits; run on the CPU by test_reports_gates, on a GPU by test_cuda_gates. The
 * bits come from the formulas at 60 digits, rounded once a step. */
#ifndef OL_GATE_REPORT_ROWS_H
#define OL_GATE_REPORT_ROWS_H

#include <onelaunch_gated_delta.h>

#define BOTH .output = OL_GATE_LOG_DECAY_AND_DECAY
#define LOWER_BOUND .kind = OL_GATE_LOWER_BOUND, .lower_bound = -5
#define PLAIN_LOWER_BOUND .kind = OL_GATE_LOWER_BOUND_PLAIN, .lower_bound = -5
#define CLAMPED .kind = OL_GATE_CLAMPED
#define NEGATED .rate = OL_GATE_RATE_NEGATED
#define ALL_FLOAT32 { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 }
#define AS_LOADED { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }

typedef struct gate_report {
    const char *row;
    ol_gate_options options;
    ol_dtype dtypes[4];                  /* of b, a, the rate, dt_bias */
    uint32_t in[4];
    uint32_t out[3];                     /* beta, log decay, decay */
} gate_report;

static const gate_report gate_reports[] = {
    /* exp(100) is infinite in float32, softplus(-200) is 0, and their product NaN, as IEEE 754 has it: what each kind makes of it. A rate kept finite is
     * the reporter's fix; without softplus the interval is negative, and the decay grows. */
    { "G1", { BOTH }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x7FC00000, 0x7FC00000 } },
    { "G1", { BOTH, .finite_rate = 1 }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH }, ALL_FLOAT32, { 0, 0x3F800000, 0x42C80000, 0 }, { 0x3F000000, 0xFF800000, 0 } },
    { "G1", { BOTH, .finite_rate = 1 }, ALL_FLOAT32, { 0, 0x3F800000, 0x42C80000, 0 }, { 0x3F000000, 0xFF800000, 0 } },
    { "G1", { BOTH, NEGATED }, ALL_FLOAT32, { 0, 0xC3480000, 0xFF800000, 0 }, { 0x3F000000, 0x7FC00000, 0x7FC00000 } },
    { "G1", { BOTH, NEGATED, .finite_rate = 1 }, ALL_FLOAT32, { 0, 0xC3480000, 0xFF800000, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH, NEGATED }, ALL_FLOAT32, { 0, 0xC3480000, 0xFF7FFFFF, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0x43480000, 0x42C80000, 0 }, { 0x3F000000, 0xC0A00000, 0x3BDCC9FF } },
    { "G1", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0, 0x42C80000, 0 }, { 0x3F000000, 0x7FC00000, 0x7FC00000 } },
    { "G1", { BOTH, LOWER_BOUND, .finite_rate = 1 }, ALL_FLOAT32, { 0, 0, 0x42C80000, 0 }, { 0x3F000000, 0xC0200000, 0x3DA81C2E } },
    { "G1", { BOTH, PLAIN_LOWER_BOUND }, ALL_FLOAT32, { 0, 0xC3480000, 0, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH, CLAMPED }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x7FC00000, 0x7FC00000 } },
    { "G1", { BOTH, CLAMPED, .finite_rate = 1 }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G1", { BOTH, CLAMPED, .interval_low = 0x1p-10 }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0xFF800000, 0 } },
    { "G1", { BOTH, .skip_softplus = 1 }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x7F800000, 0x7F800000 } },
    { "G1", { BOTH, CLAMPED, .skip_softplus = 1 }, ALL_FLOAT32, { 0, 0xC3480000, 0x42C80000, 0 }, { 0x3F000000, 0x7FC00000, 0x7FC00000 } },
    /* No threshold and no overflow without one: softplus(89) is 89. */
    { "G3", { BOTH }, ALL_FLOAT32, { 0, 0x42B00000, 0xC0B1EB85, 0x3F800000 }, { 0x3F000000, 0xBEAF618D, 0x3F35C032 } },
    { "G3", { BOTH, .sum = OL_GATE_SUM_FLOAT32 }, AS_LOADED, { 0, 0x42B0, 0xC0B1EB85, 0x3F80 }, { 0x3F00, 0xBEAF618D, 0x3F35C032 } },
    { "G3", { BOTH }, AS_LOADED, { 0, 0x42B0, 0xC0B1EB85, 0x3F80 }, { 0x3F00, 0xBEAF618D, 0x3F35C032 } },
    /* exp(c_r) exp(-c_c) fails where decays are strong; the log decay is exact where the decay is 0. */
    { "G5", { BOTH }, ALL_FLOAT32, { 0, 0x41A00000, 0x409CCCCD, 0 }, { 0x3F000000, 0xC527DCBC, 0 } },
    /* No decay is exactly 1, and total decay exactly 0. */
    { "G7", { BOTH }, ALL_FLOAT32, { 0, 0xC3480000, 0x409CCCCD, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G7", { BOTH }, ALL_FLOAT32, { 0, 0xFF800000, 0x409CCCCD, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    { "G7", { BOTH }, ALL_FLOAT32, { 0, 0x447A0000, 0x409CCCCD, 0 }, { 0x3F000000, 0xC8032473, 0 } },
    { "G7", { BOTH }, ALL_FLOAT32, { 0, 0x40400000, 0xFF800000, 0 }, { 0x3F000000, 0x80000000, 0x3F800000 } },
    /* beta rounded to bfloat16 or not, stored wide or not, from wide b; doubled; raw. */
    { "G9", { BOTH, .beta_rounding = OL_FLOAT32 }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F1F597F, 0xBF310000, 0x3F003919 } },
    { "G9", { BOTH }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F1F, 0xBF310000, 0x3F003919 } },
    { "G9", { BOTH, .beta_dtype = OL_FLOAT32 }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F1F0000, 0xBF310000, 0x3F003919 } },
    { "G9", { BOTH, .beta_rounding = OL_BFLOAT16 }, ALL_FLOAT32, { 0x3F000000, 0, 0, 0 }, { 0x3F1F, 0xBF317218, 0x3F000000 } },
    { "G9", { BOTH, .beta = OL_GATE_BETA_DOUBLED, .beta_rounding = OL_FLOAT32 }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F9F597F, 0xBF310000, 0x3F003919 } },
    { "G9", { BOTH, .beta = OL_GATE_BETA_DOUBLED }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F9F, 0xBF310000, 0x3F003919 } },
    { "G9", { BOTH, .beta = OL_GATE_BETA_RAW, .beta_dtype = OL_FLOAT32 }, AS_LOADED, { 0x3F00, 0, 0, 0 }, { 0x3F000000, 0xBF310000, 0x3F003919 } },
    /* A_log in its own dtype; float16 whose exponential float16 does not hold. */
    { "G11", { BOTH }, AS_LOADED, { 0, 0x3F80, 0xC0133333, 0 }, { 0x3F00, 0xBE06BF76, 0x3F606F73 } },
    { "G11", { BOTH }, { OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16 }, { 0, 0x3F80, 0xC013, 0 }, { 0x3F00, 0xBE072B6D, 0x3F6057CB } },
    { "G11", { BOTH }, { OL_FLOAT16, OL_FLOAT32, OL_FLOAT16, OL_FLOAT32 }, { 0, 0xC1A00000, 0x4B00, 0 }, { 0x3800, 0xBB227290, 0x3F7F5DC1 } },
    /* float32 results of bfloat16 activations. */
    { "G21", { BOTH, .beta_rounding = OL_FLOAT32 }, AS_LOADED, { 0x3F80, 0x3F80, 0xBF800000, 0x3F80 }, { 0x3F3B26A8, 0xBF48205D, 0x3EEA4B82 } },
    /* The lower bound scales a sigmoid, and is no clamp of a softplus; also without A_log, and with a rate of 0. */
    { "G37", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0x40400000, 0, 0 }, { 0x3F000000, 0xC0986970, 0x3C0BEFC8 } },
    { "G37", { BOTH }, ALL_FLOAT32, { 0, 0x40400000, 0, 0 }, { 0x3F000000, 0xC0431C0E, 0x3D4241A2 } },
    { "G37", { BOTH, PLAIN_LOWER_BOUND }, ALL_FLOAT32, { 0, 0x40400000, 0, 0 }, { 0x3F000000, 0xC0986970, 0x3C0BEFC8 } },
    { "G37", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0x40400000, 0xFF800000, 0 }, { 0x3F000000, 0xC0200000, 0x3DA81C2E } },
    /* ssm_a is -exp(A_log) already: the same bits. */
    { "G39", { BOTH }, ALL_FLOAT32, { 0, 0xBFC00000, 0xC0B1EB85, 0x3E800000 }, { 0x3F000000, 0xBA7E2E03, 0x3F7FC07C } },
    { "G39", { BOTH, NEGATED }, ALL_FLOAT32, { 0, 0xBFC00000, 0xBB7C3BC2, 0x3E800000 }, { 0x3F000000, 0xBA7E2E03, 0x3F7FC07C } },
    { "G39", { BOTH, LOWER_BOUND }, ALL_FLOAT32, { 0, 0xBFC00000, 0xC0B1EB85, 0x3E800000 }, { 0x3F000000, 0xC01F9D79, 0x3DA91FC3 } },
    { "G39", { BOTH, LOWER_BOUND, NEGATED }, ALL_FLOAT32, { 0, 0xBFC00000, 0xBB7C3BC2, 0x3E800000 }, { 0x3F000000, 0xC01F9D79, 0x3DA91FC3 } },
};

#endif
