// `braid bench`: how long a step takes.
#pragma once

#include "app/flags.h"

namespace braid {

int bench_transformer(const BenchFlags& flags);

}  // namespace braid
