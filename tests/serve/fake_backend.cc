#include "fake_backend.h"

#include <algorithm>

namespace braid::serve {

void FakeEngine::draw(const Request& request, const Hooks& hooks) {
  {
    const std::scoped_lock lock(mutex_);
    ++calls_;
    last_ = request;
    preview_interval_ = hooks.preview_interval;
    changed_.notify_all();
  }
  if (request.prompts.front() == "fails") throw Error("the device is out of memory");
  if (request.prompts.front() == "is not loaded") throw LoadFailed("/models/demo is not a folder");
  if (request.guidance == 0) hooks.warning("the guidance is not used");  // again
  if (request.prompts.front() == "long") hooks.warning("the prompt's end is ignored");
  if (request.adapters && request.adapters->back().file == "/models/odd.safetensors")
    throw InputError("/models/odd.safetensors does not fit this model");
  if (request.prompts.front() == "is lost") throw BackendLost("rank 1 is gone");
  for (int k = 0; k < request.num_images; k += num_together)
    draw_round(request, hooks, k, std::min(num_together, request.num_images - k));
}

void FakeEngine::draw_round(const Request& request, const Hooks& hooks, int first, int count) {
  Progress at{.phase = Phase::kDenoise, .first_picture = first, .num_pictures = count};
  at.total = *request.steps - skipped_steps;
  hooks.progress(at);
  while (at.done < at.total) {
    wait_for_step(hooks.stop);
    ++at.done;
    for (int k = first; hooks.preview && k < first + count; ++k)
      hooks.preview(
          {.picture = k, .step = int(at.done), .width = 1, .height = 1, .rgb = {1, 2, 3}});
    hooks.progress(at);
  }
  Progress decoding{
      .phase = Phase::kDecode, .total = count, .first_picture = first, .num_pictures = count};
  hooks.progress(decoding);
  for (int k = first; k < first + count; ++k) hand_over(request, hooks, k);
  decoding.done = count;
  if (tells_of_decoded) hooks.progress(decoding);
}

void FakeEngine::hand_over(const Request& request, const Hooks& hooks, int number) {
  const auto seed = request.seed + std::uint64_t(number);
  const int frames = request.layers.value_or(request.frames.value_or(1));
  for (int frame = 0; frame < frames; ++frame) {
    if (takes_a_step_each) wait_for_step(hooks.stop);
    hand_over(request, hooks, seed, frame);
  }
}

void FakeEngine::hand_over(const Request& request, const Hooks& hooks, std::uint64_t seed,
                           int frame) const {
  const auto pixels = std::size_t(*request.width) * std::size_t(*request.height);
  const int frames = request.layers.value_or(request.frames.value_or(1));
  Picture picture{.width = *request.width,
                  .height = *request.height,
                  .rgb = std::vector<std::uint8_t>(pixels * 3, std::uint8_t(seed)),
                  .prompt = request.prompts.front(),
                  .seed = seed,
                  .frame = frame,
                  .num_frames = frames,
                  .frames_per_second = frames > 1 && !request.layers ? 8.0 : 0.0};
  if (draws_alpha_) picture.alpha.assign(pixels, std::uint8_t(0));
  hooks.picture(picture);
}

void FakeEngine::wait_for_step(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  is_waiting_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !is_held_ || allowed_ > 0 || stop.stop_requested(); });
  is_waiting_ = false;
  if (stop.stop_requested()) throw Cancelled("stopped");
  if (is_held_) --allowed_;
}

}  // namespace braid::serve
