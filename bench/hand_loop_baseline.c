#define HAND_LOOP(name) name##_baseline
#include "hand_loop_body.h"
