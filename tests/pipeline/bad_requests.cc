#include "bad_requests.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host_memory.h"

namespace braid {
namespace {

class Paint : public std::exception {
 public:
  const char* what() const noexcept override { return "out of paint"; }
};

}  // namespace

PipelineOptions demo_options(const Layout& layout) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
          .dtype = Dtype::kFloat32,
          .threads = 1,
          .layout = layout};
}

Request good_request() {
  return {.prompts = {"a blue square"},
          .negative_prompt = "blurred",
          .true_cfg = 2,
          .width = 144,  // two tiles
          .height = 32,
          .steps = 2,
          .max_sequence_length = 16,
          .seed = 3,
          .num_images = 2,
          .batch_size = 2,
          .vae_tiling = VaeTiling::kOn};
}

PictureBytes bytes_of(const std::vector<Picture>& pictures) {
  PictureBytes bytes;
  for (const auto& picture : pictures)
    bytes.insert(bytes.end(), picture.rgb.begin(), picture.rgb.end());
  return bytes;
}

Hooks at_progress(Phase phase, std::int64_t done, std::function<void()> act) {
  Hooks hooks;
  hooks.progress = [=](const Progress& progress) {
    if (progress.phase == phase && progress.done == done) act();
  };
  return hooks;
}

std::map<std::string, BadRequest> wrong_requests() {
  const auto with = [](const std::function<void(Request&)>& spoil) -> BadRequest {
    return [=](const Engine& engine) {
      auto request = good_request();
      spoil(request);
      EXPECT_THROW(engine.generate(request, {}), InputError);
    };
  };
  return {
      {"latents of another shape", with([](Request& r) {
         r.latents = Latents{.shape = {2, 18, 63}, .values = std::vector<float>(2 * 18 * 63)};
       })},
      {"too few latents", with([](Request& r) {
         r.latents = Latents{.shape = {2, 18, 64}, .values = std::vector<float>(7)};
       })},
      {"latents that are no numbers", with([](Request& r) {
         r.latents = Latents{.shape = {2, 18, 64}, .values = std::vector<float>(2 * 18 * 64, NAN)};
       })},
      {"a prompt that is not UTF-8", with([](Request& r) { r.prompts = {"a \xff square"}; })},
      {"a negative prompt that is cut", with([](Request& r) { r.negative_prompt = "\xe2\x82"; })},
      {"a second prompt that is not UTF-8", with([](Request& r) { r.prompts_2 = {"\x80"}; })},
      {"no prompt", with([](Request& r) { r.prompts.clear(); })},
      {"no steps", with([](Request& r) { r.steps = 0; })}};
}

std::map<std::string, BadRequest> failing_requests() {
  const auto with = [](const Hooks& hooks) -> BadRequest {
    return
        [=](const Engine& engine) { EXPECT_THROW(engine.generate(good_request(), hooks), Paint); };
  };
  const auto fail = [] { throw Paint(); };
  Hooks of_pictures, of_warnings;
  of_pictures.picture = [](Picture&) { throw Paint(); };
  of_warnings.warning = [](const std::string&) { throw Paint(); };
  return {
      {"a callback that throws at the first prompt", with(at_progress(Phase::kText, 0, fail))},
      {"a callback that throws after a step", with(at_progress(Phase::kDenoise, 1, fail))},
      {"a callback that throws after the last step", with(at_progress(Phase::kDenoise, 2, fail))},
      {"a callback that throws before decoding", with(at_progress(Phase::kDecode, 0, fail))},
      {"a callback that throws at a picture", with(of_pictures)},
      {"a warning that throws before a run",
       [=](const Engine& engine) {
         auto request = good_request();
         request.width = 145;
         EXPECT_THROW(engine.generate(request, of_warnings), Paint);
       }},
      {"a warning that throws in a run",
       [=](const Engine& engine) {
         auto request = good_request();
         for (int i = 0; i < 7; ++i) request.prompts[0] += request.prompts[0];
         EXPECT_THROW(engine.generate(request, of_warnings), Paint);
       }},
      {"a callback that throws what is no exception", [](const Engine& engine) {
         const auto hooks = at_progress(Phase::kDenoise, 1, [] { throw 7; });
         EXPECT_THROW(engine.generate(good_request(), hooks), int);
       }}};
}

std::map<std::string, BadRequest> stopped_requests() {
  const auto at = [](Phase phase, std::int64_t done) -> BadRequest {
    return [=](const Engine& engine) {
      std::stop_source stop;
      auto hooks = at_progress(phase, done, [=]() mutable { stop.request_stop(); });
      hooks.stop = stop.get_token();
      EXPECT_THROW(engine.generate(good_request(), hooks), Cancelled);
    };
  };
  return {{"a stop before it begins",
           [](const Engine& engine) {
             std::stop_source stop;
             stop.request_stop();
             EXPECT_THROW(engine.generate(good_request(), {.stop = stop.get_token()}), Cancelled);
           }},
          {"a stop at the prompts", at(Phase::kText, 1)},
          {"a stop in the second step", at(Phase::kDenoise, 1)},
          {"a stop while decoding", at(Phase::kDecode, 0)}};
}

BadRequest without_memory_after(std::int64_t count) {
  return [=](const Engine& engine) {
    HostMemory::get().run_out_after(count);
    EXPECT_ANY_THROW(engine.generate(good_request(), {})) << "after " << count << " allocations";
    HostMemory::get().act_after({});
  };
}

}  // namespace braid
