// What AUTOMATIC1111's web UI does to a picture of which a mask keeps a part.
#pragma once

#include "braid/braid.h"

namespace braid::serve {

// Lays the initial picture over `drawn` where the mask is black, so that its pixels stay as they
// are: what is drawn has passed through the autoencoder everywhere. The overlay fades out up to the
// mask's middle grey, as that of modules/processing.py. A crop around the mask is put back by the
// engine, and left alone here.
void lay_over_kept_part(Picture& drawn, const PicturesIn& in);

}  // namespace braid::serve
