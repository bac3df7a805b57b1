// The toy family: one text encoder (a T5), latents one token each with their channels last.
#pragma once

#include "model.h"
#include "pipeline/families/family.h"

namespace braid::toy {

FamilyEntry toy_family();

}  // namespace braid::toy
