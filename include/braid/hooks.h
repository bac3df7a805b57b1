// What a call makes, and what it tells while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace braid {

struct Picture {
  int width = 0, height = 0;      // pixels
  std::vector<std::uint8_t> rgb;  // row-major, three bytes a pixel
  std::string prompt;
  std::uint64_t seed = 0;
};

enum class Phase { kLoad, kText, kDenoise, kDecode };
struct Progress {
  Phase phase;
  std::int64_t done = 0, total = 0;         // bytes while loading, prompts, steps, pictures
  int first_picture = 0, num_pictures = 0;  // which pictures this step or decode is about
};

// A rough picture of where a step leads: a pixel for each of the latents, which stands for 8 x 8.
struct Preview {
  int picture = 0;                // of the request, from 0
  int step = 0;                   // steps done
  int width = 0, height = 0;      // pixels
  std::vector<std::uint8_t> rgb;  // row-major, three bytes a pixel
};

// Callbacks run on the calling thread. An exception thrown by one ends the call and passes through.
struct Hooks {
  std::function<void(const Progress&)> progress = {};
  std::function<void(Picture&)> picture = {};  // each, as soon as it is decoded
  // Changes no bit of the pictures. At most one round of pictures in so many seconds.
  std::function<void(const Preview&)> preview = {};
  double preview_interval = 0;
  std::function<void(const std::string&)> warning = {};  // a rounded size, a truncated prompt
  std::stop_token stop = {};  // ends the call with `Cancelled`, also within a step or a load
};

}  // namespace braid
