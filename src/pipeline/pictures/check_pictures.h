// What pictures a request may bring, and what follows from them.
#pragma once

#include "braid/request.h"
#include "pipeline/families/description.h"
#include "pipeline/picture_size.h"

namespace braid {

// Throws InputError where the family does not take a picture, needs one that is not there, or where
// pictures or the strength do not fit each other.
void check_pictures(const Request& request, const PicturesTaken& taken);

// Which ControlNet follows a control picture: its own, or the only one.
std::size_t net_of_control(std::size_t control, std::size_t num_nets);

// The size of pictures for which none was asked: that of what they start from or look at, scaled
// down where it is larger than the family's largest, else the family's default.
PictureSize size_without_request(const PicturesIn& pictures, const RequestLimits& limits);

// Whether an initial picture is a reference, too, beside those of the request.
bool init_is_reference(int references, const PicturesTaken& taken);

// Of the pictures that the model sees as tokens beside the noise's, in their order, where `size` is
// drawn: an initial picture that is the first reference, and references.
std::vector<PictureSize> sizes_looked_at(const PicturesIn& pictures, const PicturesTaken& taken,
                                         PictureSize size);

// The first of `steps` that is taken at a strength of 0 to 1. Throws InputError where none is.
int first_step_of(int steps, double strength);

}  // namespace braid
