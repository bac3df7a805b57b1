// An engine for tests of the server: pictures of one colour, steps that take as long as the test
// lets them.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "image/png.h"
#include "serve/backend.h"

namespace braid::serve {

class FakeEngine {
 public:
  // Steps wait for each other until release() or finish() lets them go on.
  enum class Steps { kAtOnce, kHeld };
  explicit FakeEngine(Steps steps = Steps::kAtOnce) : is_held_(steps == Steps::kHeld) {}

  // So many more steps may be taken.
  void release(int steps) {
    const std::scoped_lock lock(mutex_);
    allowed_ += steps;
    changed_.notify_all();
  }
  void finish() { release(1 << 30); }
  void wait_until_called(int calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ >= calls; });
  }

  Backend backend() {
    Backend backend;
    backend.model = "demo";
    backend.info = {.family = "Fake",
                    .width = 128,
                    .height = 64,
                    .steps = 4,
                    .guidance = 3.5,
                    .max_sequence_length = 64,
                    .largest_side = 4096,
                    .max_text_tokens = 512};
    backend.complete = [info = backend.info](const Request& request, const Hooks& hooks) {
      if (request.guidance == 0) hooks.warning("the guidance is not used");
      require(request.prompts.front() != "refused", "this prompt is refused");
      auto all = request;
      all.width = request.width.value_or(info.width);
      all.height = request.height.value_or(info.height);
      all.steps = request.steps.value_or(info.steps);
      all.guidance = request.guidance.value_or(info.guidance);
      all.max_sequence_length = request.max_sequence_length.value_or(info.max_sequence_length);
      return all;
    };
    backend.generate = [this](const Request& request, const Hooks& hooks) { draw(request, hooks); };
    backend.png = [](const Picture& picture, const Request& request) {
      const auto& prompt = request.prompts.front();
      return encode_png(picture.width, picture.height, picture.rgb, {{"prompt", prompt}});
    };
    return backend;
  }

  Load load() {
    return [this](const Hooks& hooks) {
      hooks.progress({.phase = Phase::kLoad, .done = 1, .total = 2});
      return backend();
    };
  }

 private:
  void draw(const Request& request, const Hooks& hooks) {
    {
      const std::scoped_lock lock(mutex_);
      ++calls_;
      changed_.notify_all();
    }
    if (request.prompts.front() == "fails") throw Error("the device is out of memory");
    if (request.prompts.front() == "is lost") throw BackendLost("rank 1 is gone");
    for (int k = 0; k < request.num_images; ++k) {
      Progress at{.phase = Phase::kDenoise, .first_picture = k, .num_pictures = 1};
      at.total = *request.steps;
      hooks.progress(at);
      while (at.done < at.total) {
        wait_for_step(hooks.stop);
        ++at.done;
        if (hooks.preview)
          hooks.preview(
              {.picture = k, .step = int(at.done), .width = 1, .height = 1, .rgb = {1, 2, 3}});
        hooks.progress(at);
      }
      hooks.progress({.phase = Phase::kDecode, .total = 1, .first_picture = k});
      const auto seed = request.seed + std::uint64_t(k);
      const auto bytes = std::size_t(*request.width) * std::size_t(*request.height) * 3;
      Picture picture{.width = *request.width,
                      .height = *request.height,
                      .rgb = std::vector<std::uint8_t>(bytes, std::uint8_t(seed)),
                      .prompt = request.prompts.front(),
                      .seed = seed};
      hooks.picture(picture);
    }
  }

  void wait_for_step(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] {
      const std::scoped_lock lock(mutex_);
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_held_ || allowed_ > 0 || stop.stop_requested(); });
    if (stop.stop_requested()) throw Cancelled("stopped");
    if (is_held_) --allowed_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_;
  int allowed_ = 0, calls_ = 0;
};

}  // namespace braid::serve
