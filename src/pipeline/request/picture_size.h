#pragma once

namespace braid {

// The size of what is drawn: a picture is a clip of one frame.
struct PictureSize {
  int width = 0, height = 0;  // pixels
  int frames = 1;
};

}  // namespace braid
