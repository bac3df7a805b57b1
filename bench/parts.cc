// How long do encoders and the decoder take? T5-XXL's width with 4 of its 24 layers; the 27 layers
// of Qwen3-4B that FLUX.2 needs, with 512 tokens; 3 of the 27 blocks of Qwen3-VL-8B's vision tower;
// FLUX.1's autoencoder; or Wan's encoder. Random weights in bfloat16. Prints one JSON object;
// called by tools/peers.
//
//   parts t5|qwen3|vision-1024|vae-512|vae-1024|vae-encode-1024[-float32]|wan-encode-1024
//         [RUNS [DEVICE]]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <functional>
#include <optional>

#include "app/machine/huge_pages.h"
#include "app/print/failure.h"
#include "app/print/readable_json.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/memory_meter.h"
#include "models/causal_lm/model.h"
#include "models/qwen3_vl/vision.h"
#include "models/t5/model.h"
#include "models/vae/model.h"
#include "pipeline/devices.h"
#include "pipeline/proofs/moment.h"

namespace braid {
namespace {

constexpr int kT5Layers = 4, kVisionBlocks = 3, kTextTokens = 512, kRuns = 5;
constexpr std::int64_t kSide = 1024;

std::function<Tensor()> encoder_of(const VaeConfig& config, at::ScalarType dtype,
                                   at::Device device) {
  const auto weights = Weights::synthetic(LoadOptions{.dtype = dtype, .device = device});
  const auto vae = std::make_shared<Vae>(config, weights, Vae::Parts::kEncoder);
  const auto picture = at::rand({1, 3, kSide, kSide}).to(dtype).to(device);
  return [=] { return vae->encode(picture, Tiles::kNever).mean; };
}

std::function<Tensor()> part_named(const std::string& name, at::Device device) {
  const auto weights = Weights::synthetic(LoadOptions{.dtype = at::kBFloat16, .device = device});
  if (name == "t5") {
    const T5Config config{.num_layers = kT5Layers};
    const auto ids = at::randint(config.vocab_size, {1, kTextTokens}, at::kLong).to(device);
    return [t5 = std::make_shared<T5>(config, weights), ids] { return (*t5)(ids); };
  }
  if (name == "qwen3") {
    const CausalLmConfig config;
    const auto ids = at::randint(config.vocab_size, {1, kTextTokens}, at::kLong).to(device);
    const auto model = std::make_shared<CausalLm>(config, HiddenStates{9, 18, 27}, weights);
    return [model, ids] { return (*model)(ids, std::vector{TextRun{0, kTextTokens}}); };
  }
  if (name == "vision-1024") {
    const VisionConfig config{.depth = kVisionBlocks, .deepstack = {}};
    const auto tower = std::make_shared<VisionTower>(weights, config);
    const auto picture = at::rand({3, kSide, kSide}).to(device);
    return [tower, picture] { return (*tower)(picture).tokens_MC; };
  }
  if (name == "vae-encode-1024") return encoder_of({}, at::kBFloat16, device);
  if (name == "vae-encode-1024-float32") return encoder_of({}, at::kFloat, device);
  if (name == "wan-encode-1024") return encoder_of(wan_vae_config(), at::kBFloat16, device);
  require(name == "vae-512" || name == "vae-1024",
          "the part should be t5, qwen3, vision-1024, vae-512, vae-1024, vae-encode-1024 or ",
          "wan-encode-1024, it is '", name, "'");
  const VaeConfig config;
  const auto side = std::stoi(name.substr(4)) / config.downscale();
  const auto latents =
      at::randn({1, config.latent_channels, side, side}).to(at::kBFloat16).to(device);
  return [vae = std::make_shared<Vae>(config, weights, Vae::Parts::kDecoder), latents] {
    return vae->decode(latents, Tiles::kNever);
  };
}

// Waits for the device, and checks the result.
void finish(const Tensor& result) {
  check(result.flatten().narrow(0, 0, 1).to(at::kCPU, at::kFloat).isfinite().item<bool>(),
        "the result is no number");
}

int time_part(const std::string& name, int runs, const std::string& device) {
  const c10::InferenceMode no_autograd;
  const auto there = find_device(device);
  const auto part = part_named(name, there);
  std::optional<KeepFreedMemory> keep;  // as in text encoders, but not in autoencoders
  if (name == "t5" || name == "qwen3" || name == "vision-1024") keep.emplace();
  finish(part());
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    const Moment begin(there);
    const auto result = part();
    const Moment end(there);
    finish(result);
    seconds.push_back(begin.seconds_until(end));
  }
  const OrderedJson json = {{"part", name},
                            {"threads", at::get_num_threads()},
                            {"seconds", seconds},
                            {"peak_bytes", MemoryMeter().take()}};  // of the process
  std::printf("%s", json_text(json).c_str());
  return kSuccess;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  braid::take_huge_pages();
  try {
    braid::require(argc >= 2,
                   "say which part: t5, qwen3, vision-1024, vae-512, vae-1024, vae-encode-1024 "
                   "or wan-encode-1024");
    const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : braid::kRuns;
    return braid::time_part(argv[1], runs, argc > 3 ? argv[3] : "cpu");
  } catch (...) {
    const auto failure = braid::current_failure();
    std::fprintf(stderr, "parts: %s\n", failure.sentence.c_str());
    return failure.exit_code;
  }
}
