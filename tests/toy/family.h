// The toy family: one text encoder (a T5), latents one token each with their channels last.
#pragma once

#include "model.h"
#include "pipeline/families/family.h"

namespace braid::toy {

FamilyEntry toy_family();
// The same with two denoisers: one for the noisy steps, the other for those below a boundary.
FamilyEntry toy_experts_family();
// And one for the prompt, the other for the negative prompt.
FamilyEntry toy_twins_family();

}  // namespace braid::toy
