#include "pipeline/engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "base/error.h"
#include "pipeline/generate.h"

namespace braid {
namespace {

void use_threads(int threads) {
  if (threads > 0) at::set_num_threads(threads);
}

std::int64_t bytes_of(const ModelFiles& files) {
  return std::int64_t(files.open_transformer().num_bytes() + files.open_vae().num_bytes() +
                      files.open_text_encoder("text_encoder").num_bytes() +
                      files.open_text_encoder("text_encoder_2").num_bytes());
}

void stop_if_asked(const Hooks& hooks) {
  if (hooks.stop.stop_requested()) throw Cancelled("stopped while loading the model");
}

std::unique_ptr<const FluxFamily> load(const PipelineOptions& options, const Hooks& hooks) {
  require(options.threads >= 0 && options.threads <= 4096,
          "the number of threads should lie between 0 and 4096, it is ", options.threads);
  use_threads(options.threads);
  const auto files = find_model(options);
  Progress progress{.phase = Phase::kLoad, .done = 0, .total = bytes_of(files)};
  const auto on_bytes = [&](std::int64_t bytes) {
    stop_if_asked(hooks);
    progress.done += bytes;
    if (hooks.progress) hooks.progress(progress);
  };
  return std::make_unique<const FluxFamily>(
      files, FamilyOptions{.load = {.device = find_device(options.device), .on_bytes = on_bytes},
                           .dtype = options.dtype});
}

}  // namespace

at::Device find_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const bool has_index = name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
                         name.find_first_not_of("0123456789", 5) == std::string::npos;
  require(name == "cuda" || has_index, "the device should be cpu, cuda or cuda:N, it is '", name,
          "'");
  require(c10::impl::hasDeviceGuardImpl(at::kCUDA), "there is no device ", name,
          ": this LibTorch has no GPU support (set BRAID_TORCH to one that has)");
  const int count = c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount();
  const int index = has_index ? std::stoi(name.substr(5)) : 0;
  require(index < count, "there is no device ", name, ": ", count, " found");
  return at::Device(at::kCUDA, at::DeviceIndex(index));
}

Engine::Engine(const PipelineOptions& options, const Hooks& hooks) : threads_(options.threads) {
  const c10::InferenceMode no_autograd;
  family_ = load(options, hooks);
}

Settings Engine::settle(const Request& request, const Hooks& hooks) const {
  return braid::settle(request, family_->limits(), hooks.warning);
}

std::vector<Picture> Engine::generate(const Request& request, const Hooks& hooks,
                                      Recording* recording) const {
  const std::scoped_lock lock(one_request_at_a_time_);
  const c10::InferenceMode no_autograd;
  use_threads(threads_);
  const auto settings = settle(request, hooks);
  return generate_pictures(*family_, settings, request.latents, hooks, recording);
}

}  // namespace braid
