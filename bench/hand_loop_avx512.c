#define HAND_LOOP(name) name##_avx512
#include "hand_loop_body.h"
