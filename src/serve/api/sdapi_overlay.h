// What AUTOMATIC1111's web UI does to a picture of which a mask keeps a part.
#pragma once

#include "braid/braid.h"

namespace braid::serve {

// Lays the initial picture over `drawn` where the mask is black, so that its pixels stay as they
// are: what is drawn has passed through the autoencoder everywhere. The overlay fades out up to the
// mask's middle grey, as that of modules/processing.py. A crop around the mask is put back by the
// engine. `unfilled` is the initial picture as it was before the part to be redrawn was filled, or
// empty if it was not: that is what shines through soft edges, also of a crop.
void lay_over_kept_part(Picture& drawn, const PicturesIn& in, const Pixels& unfilled);

}  // namespace braid::serve
