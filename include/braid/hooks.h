// What a call returns, and what it reports while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "braid/latents.h"

namespace braid {

struct Picture {
  int width = 0, height = 0;      // pixels
  std::vector<std::uint8_t> rgb;  // row-major, three bytes per pixel
  std::string prompt;
  std::uint64_t seed = 0;
  // One byte per pixel, 255 is opaque; empty where the model draws no alpha. The colours are not
  // multiplied by it.
  std::vector<std::uint8_t> alpha = {};
  // A clip's frames follow each other; layers of a picture are frames, too, from the lowest up.
  int frame = 0, num_frames = 1;
  double frames_per_second = 0;  // of a clip; 0: a picture, or a layer of one
  // As the request's `output` asks. kValues: [channels(), height, width], 0 to 1. kLatents: packed,
  // [tokens, width], as after the last step.
  Latents values = {};

  int channels() const { return alpha.empty() ? 3 : 4; }
};

enum class Phase { kLoad, kText, kDenoise, kDecode };
struct Progress {
  Phase phase;
  std::int64_t done = 0, total = 0;         // bytes while loading, then prompts, steps, pictures
  int first_picture = 0, num_pictures = 0;  // the pictures this step or decode covers
};

// A rough preview of where a step leads: one pixel per latent, each standing for 8 x 8 pixels. What
// is transparent lies on white; of layers, it shows the lowest.
struct Preview {
  int picture = 0;                // index in the request, from 0
  int step = 0;                   // completed steps
  int width = 0, height = 0;      // pixels
  std::vector<std::uint8_t> rgb;  // row-major, three bytes per pixel
};

// A step's end. Changes to the latents are where the next step starts from, or what is decoded.
struct StepEnd {
  int step = 0;           // completed steps, from 1 on
  double timestep = 0;    // that the step was evaluated at
  int first_picture = 0;  // the first row's index in the request
  Latents latents = {};   // packed, [pictures, tokens, width]
};

// Callbacks run on the calling thread, and take as long as they like. An exception thrown by one
// ends the call and propagates.
struct Hooks {
  std::function<void(const Progress&)> progress = {};
  std::function<void(Picture&)> picture = {};  // called for each, as soon as it is decoded
  // Does not change the pictures by a single bit. At most one round of pictures per
  // `preview_interval` seconds.
  std::function<void(const Preview&)> preview = {};
  double preview_interval = 0;
  // Gets latents of all pictures of a round, from all ranks. Ranks that are processes must all have
  // one, or none; only the first rank's is called.
  std::function<void(StepEnd&)> step_end = {};
  std::function<void(const std::string&)> warning = {};  // a rounded size, a truncated prompt
  // Ends the call with `Cancelled`, even within a step or a load, or while it waits for another.
  // Once the last picture is drawn it comes too late: a stop asked for in that picture's callback
  // ends nothing, and the pictures are returned.
  std::stop_token stop = {};
};

}  // namespace braid
