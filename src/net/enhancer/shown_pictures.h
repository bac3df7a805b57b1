// Pictures as an enhancer sees them.
#pragma once

#include <string>
#include <vector>

#include "braid/inputs.h"

namespace braid::net {

// Which card says how pictures are scaled: those of Qwen's enhancers, whose rule others take too,
// have at most a megapixel each and are never enlarged; FLUX.3's have sides of multiples of 32 and
// fewer pixels if there are several.
enum class PictureRule { kMegapixel, kShared };

// JPEGs of quality 92, on white, scaled by Lanczos. Throws InputError for more than 10.
std::vector<std::string> shown_pictures(const std::vector<const Pixels*>& pictures,
                                        PictureRule rule);

// The size of one of `count` pictures under FLUX.3's rule. Throws InputError for a picture more
// than 200 times as long as wide.
struct ShownSize {
  int width, height;
};
ShownSize shared_size(int width, int height, int count);

}  // namespace braid::net
