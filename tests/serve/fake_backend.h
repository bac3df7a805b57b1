// An engine for tests of the server: pictures of a single colour, steps that take as long as the
// test wants.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "image/png.h"
#include "serve/backend.h"

namespace braid::serve {

class FakeEngine {
 public:
  // Held steps wait until release() or finish() lets them continue.
  enum class Steps { kAtOnce, kHeld };
  explicit FakeEngine(Steps steps = Steps::kAtOnce, std::size_t num_models = 1)
      : num_models_(num_models), is_held_(steps == Steps::kHeld) {}

  explicit FakeEngine(std::function<void(Backend&)> another)
      : adapt(std::move(another)), num_models_(1), is_held_(false) {}

  // What the model is, where a test wants another one. Set before the engine is loaded.
  std::function<void(Backend&)> adapt = {};
  // Set before the engine is called:
  int skipped_steps = 0;           // of those that a request asks for
  int num_together = 1;            // pictures of a round
  bool takes_a_step_each = false;  // of a picture's files
  bool tells_of_decoded = false;   // behind a round's pictures, as the engine does
  int num_releases() {
    const std::scoped_lock lock(mutex_);
    return releases_;
  }
  // Allows so many more steps.
  void release(int steps) {
    const std::scoped_lock lock(mutex_);
    allowed_ += steps;
    changed_.notify_all();
  }
  void finish() { release(1 << 30); }
  // Returns once the engine waits for another step.
  void wait_until_used() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return allowed_ == 0 && is_waiting_; });
  }
  // The request of the last call.
  Request last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  double preview_interval() {
    const std::scoped_lock lock(mutex_);
    return preview_interval_;
  }
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
                    .max_text_tokens = 512,
                    .pictures = {.takes_init = true, .takes_mask = true, .most_references = 2}};
    backend.complete = [info = backend.info](const Request& request, const Hooks& hooks) {
      if (request.guidance == 0) hooks.warning("the guidance is not used");
      require(request.prompts.front() != "refused", "this prompt is refused");
      auto all = request;
      const auto& init = request.pictures.init;
      all.width = request.width.value_or(init ? init->width : info.width);
      all.height = request.height.value_or(init ? init->height : info.height);
      all.steps = request.steps.value_or(info.steps);
      all.guidance = request.guidance.value_or(info.guidance);
      all.max_sequence_length = request.max_sequence_length.value_or(info.max_sequence_length);
      return all;
    };
    backend.count_tokens = [](const std::string& prompt, const std::string& second, int most) {
      if (prompt == "\xff") throw InputError("the prompt is not UTF-8");
      if (prompt == "is not loaded") throw LoadFailed("/models/demo is not a folder");
      return std::vector<Backend::TokenCount>{
          {.encoder = "short", .tokens = std::int64_t(prompt.size()), .limit = 4, .cut = "end"},
          {.encoder = "long", .tokens = std::int64_t(second.size()), .limit = most}};
    };
    backend.controlnets = {{.name = "union", .num_modes = 7}};
    backend.has_redux = true;
    backend.loras = [] {
      return std::map<std::string, std::filesystem::path>{{"ink", "/models/ink.safetensors"},
                                                          {"odd", "/models/odd.safetensors"}};
    };
    backend.adapters = {{"/models/always.safetensors", 2}};
    backend.release = [this] {
      const std::scoped_lock lock(mutex_);
      ++releases_;
    };
    backend.generate = [this](const Request& request, const Hooks& hooks) { draw(request, hooks); };
    backend.text = [](const Picture& picture, const Request& request,
                      const std::vector<InputFile>& files) {
      PngText text = {{"prompt", request.prompts.front()}};
      // Such a text is as large as a noisy picture of a megapixel, without its time.
      if (request.prompts.front() == "large") text.emplace_back("noise", std::string(3 << 20, 'x'));
      for (const auto& file : files) text.emplace_back(file.role, file.name);
      text.emplace_back("steps", std::to_string(*request.steps));
      text.emplace_back("seed", std::to_string(picture.seed));
      return text;
    };
    if (adapt) adapt(backend);
    draws_alpha_ = backend.info.draws_alpha;
    return backend;
  }

  Load load() {
    return [this](const Hooks& hooks) {
      hooks.progress({.phase = Phase::kLoad, .done = 1, .total = 2});
      if (hooks.warning) hooks.warning("a file is left over");
      std::vector<Backend> backends(num_models_, backend());
      for (std::size_t i = 1; i < backends.size(); ++i) backends[i].model += std::to_string(i);
      return backends;
    };
  }

 private:
  void draw(const Request& request, const Hooks& hooks);
  void draw_round(const Request& request, const Hooks& hooks, int first, int count);
  void hand_over(const Request& request, const Hooks& hooks, int number);
  void hand_over(const Request& request, const Hooks& hooks, std::uint64_t seed, int frame) const;
  void wait_for_step(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t num_models_;  // demo, demo1, demo2 ...
  bool is_held_, draws_alpha_ = false, is_waiting_ = false;
  int allowed_ = 0, calls_ = 0, releases_ = 0;
  Request last_;
  double preview_interval_ = -1;  // of the last call
};

}  // namespace braid::serve
