#define HAND_LOOP(name) name##_avx2
#include "hand_loop_body.h"
