// The toy family that is causal by blocks: see model.h.
#pragma once

#include "model.h"
#include "pipeline/families/family.h"

namespace braid::toy {

FamilyEntry sticker_family();

}  // namespace braid::toy
