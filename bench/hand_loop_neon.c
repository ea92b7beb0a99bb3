#define HAND_LOOP(name) name##_neon
#include "hand_loop_body.h"
