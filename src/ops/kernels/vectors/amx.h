// Intel AMX tiles: palette 1, eight tiles of 16 rows of 64 bytes. Processors with AMX also have
// AVX-512 with bfloat16.
#pragma once

#include "ops/kernels/vectors/avx512_bf16.h"
