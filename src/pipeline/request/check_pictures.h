// Which pictures a request may bring, and what follows from them.
#pragma once

#include "braid/request.h"
#include "pipeline/families/description.h"
#include "pipeline/families/text_encoders.h"
#include "pipeline/request/picture_size.h"

namespace braid {

// Throws InputError if the family does not accept a picture, requires one that is missing, or if
// pictures or strength do not match each other.
void check_pictures(const Request& request, const PicturesTaken& taken);

// Warns of what a request says of its pictures without effect: a reference cache that is off where
// the model has none, ControlNets that follow nothing. A model that is loaded with ControlNets also
// draws without them.
void warn_of_unused(const PicturesIn& pictures, const RequestLimits& limits, const Warn& warn);

// Whether PicturesIn::reference_cache has an effect.
bool may_cache_references(const RequestLimits& limits);

// Whether drawing starts from the initial picture: not where a ControlNet follows it and nothing of
// it would be left under the noise.
bool starts_from_init(const PicturesIn& pictures, const PicturesTaken& taken);

// How much noise is added to the initial picture; unset where drawing starts from none.
std::optional<double> strength_of(const PicturesIn& pictures, const PicturesTaken& taken);

// The ControlNet that follows a control picture: the one of the same number, or the only one.
std::size_t net_of_control(std::size_t control, std::size_t num_nets);

// A reference, one of `count`, as the encoder sees it when `size` is drawn.
Pixels fitted_reference(const Pixels& reference, std::size_t count, const PicturesTaken& taken,
                        PictureSize size);

// The part of what is drawn that is returned; unset: all of it.
std::optional<Region> region_returned(const Request& request, const PicturesTaken& taken);

// The size to draw if none was asked for: that of the initial picture or reference, scaled down if
// larger than the family's largest; else the family's default.
PictureSize size_without_request(const PicturesIn& pictures, const RequestLimits& limits);

// Whether the initial picture also counts as a reference, beside those of the request.
bool init_is_reference(int references, const PicturesTaken& taken);

// Sizes of the pictures that the model sees as tokens beside the noise's, in order, when `size` is
// drawn: an initial picture that is the first reference, then the references.
std::vector<PictureSize> reference_sizes(const PicturesIn& pictures, const PicturesTaken& taken,
                                         PictureSize size);

// The first of `steps` that runs at a strength of 0 to 1. Throws InputError if none does.
int first_step_of(int steps, double strength);

}  // namespace braid
