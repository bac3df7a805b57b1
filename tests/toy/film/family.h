// The toy family for clips: see model.h.
#pragma once

#include "model.h"
#include "pipeline/families/family.h"

namespace braid::toy {

FamilyEntry film_family();

}  // namespace braid::toy
