#pragma once

namespace braid {

struct PictureSize {
  int width = 0, height = 0;  // pixels
};

}  // namespace braid
