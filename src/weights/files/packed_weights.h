// Matrices stored as several tensors, in the forms of packed_form.h.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

// Joins the tensors of packed matrices: B.weight becomes the matrix of numbers that they stand for.
// Removes them from `tensors` and returns those beside the values. Throws InputError naming the
// tensor if one of a form is missing, or if shapes or types do not fit each other.
StoredByName join_packed(StoredByName& tensors);

}  // namespace braid
