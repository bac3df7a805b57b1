#include "ops/gpu/architectures.h"

namespace braid::ops::gpu {

std::string compiled_architectures() { return BRAID_GPU_ARCHITECTURES; }

}  // namespace braid::ops::gpu
