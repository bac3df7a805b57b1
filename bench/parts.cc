// How long do encoders and the decoder take? T5-XXL's width with 4 of its 24 layers; the 27 layers
// of Qwen3-4B that FLUX.2 needs, with 512 tokens; Qwen3-VL-8B for a picture of 1024x1024: 3 of the
// 27 blocks of its vision tower, or 4 of its 36 layers, with 63 tokens of text; FLUX.1's
// autoencoder; or the encoders of FLUX.2's and Wan's. Random weights in bfloat16. Prints one JSON
// object; called by tools/peers. qwen3-vl-8b is all of that model, in int8 from pages in FOLDER.
//
//   parts t5|qwen3|qwen3-vl|vision-1024|vae-512|vae-1024|vae-encode-1024[-float32]|
//         flux2-encode-1024|wan-encode-1024 [RUNS [DEVICE]]
//   parts qwen3-vl-8b RUNS DEVICE FOLDER
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>

#include "app/machine/huge_pages.h"
#include "app/print/failure.h"
#include "app/print/readable_json.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/memory_meter.h"
#include "models/causal_lm/model.h"
#include "models/qwen25_vl/model.h"
#include "models/qwen3_vl/model.h"
#include "models/t5/model.h"
#include "models/vae/model.h"
#include "pipeline/devices/devices.h"
#include "pipeline/families/flux2/published.h"
#include "pipeline/memory/offload.h"
#include "pipeline/proofs/moment.h"

namespace braid {
namespace {

constexpr int kT5Layers = 4, kVisionBlocks = 3, kTextTokens = 512, kRuns = 5;
constexpr int kVlLayers = 4, kVlTextTokens = 63;
constexpr std::int64_t kSide = 1024, kWindowsSide = 1036;  // Qwen2.5-VL's tokens have 28 pixels
constexpr const char* kWholeReader = "qwen3-vl-8b";
constexpr const char* kParts =
    "t5, qwen3, qwen3-vl, qwen25-vl, vision-1024, windows-1036, vae-512, vae-1024, "
    "vae-encode-1024, flux2-encode-1024, wan-encode-1024 or qwen3-vl-8b";

std::function<Tensor()> encoder_of(const VaeConfig& config, at::ScalarType dtype,
                                   at::Device device) {
  const auto weights = Weights::synthetic(LoadOptions{.dtype = dtype, .device = device});
  const auto vae = std::make_shared<Vae>(config, weights, Vae::Parts::kEncoder);
  const auto picture = at::rand({1, 3, kSide, kSide}).to(dtype).to(device);
  return [=] { return vae->encode(picture, Tiles::kNever).mean; };
}

// Token 0 is the picture's.
std::vector<std::int64_t> text_and_picture() {
  std::vector<std::int64_t> ids(kVlTextTokens + 1);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// A few layers that read, behind a tower of one block.
template <class Config>
Config shortened(Config config) {
  config.vision.depth = 1;
  config.image_token = 0;
  config.text.vocab_size = kVlTextTokens + 1;
  config.text.num_layers = kVlLayers;
  return config;
}

Tensor tokens_of_picture(std::int64_t side, const CausalLmConfig& text, at::Device device) {
  return at::randn({side * side, text.hidden}).to(at::kBFloat16).to(device);
}

// A picture's tokens are given.
std::function<Tensor()> reader_of_pictures(const Weights& weights) {
  auto config = shortened(Qwen3VlConfig());
  config.vision.deepstack.clear();
  const auto side = kSide / config.vision.pixels_per_token();
  const auto tokens = tokens_of_picture(side, config.text, weights.device());
  const EncodedPictures seen{.grids = {{side, side}}, .all = {.tokens_MC = tokens, .added_MC = {}}};
  return [=, model = std::make_shared<Qwen3Vl>(config, weights)] {
    return (*model)(text_and_picture(), seen);
  };
}

// The same for Qwen2.5-VL.
std::function<Tensor()> reader_of_windows(const Weights& weights) {
  auto config = shortened(Qwen25VlConfig());
  config.vision.whole.clear();
  const auto side = kWindowsSide / config.vision.form().pixels_per_token();
  const auto tokens = tokens_of_picture(side, config.text, weights.device());
  const TowerTokens seen{.grids = {{side, side}}, .tokens_MC = tokens};
  return [=, model = std::make_shared<Qwen25Vl>(config, weights)] {
    return (*model)(text_and_picture(), seen);
  };
}

// All of JoyAI-Image-Edit's text encoder: a picture is seen, then read.
std::function<Tensor()> whole_reader(at::Device device, const std::string& folder) {
  const auto pages = std::make_shared<OffloadedParts>(
      Offload{.text = OffloadMode::kBlock, .folder = folder}, device);
  const auto weights = Weights::synthetic({.dtype = at::kBFloat16,
                                           .device = device,
                                           .quantize = Quantize::kInt8,
                                           .paging = pages->text()});
  Qwen3VlConfig config;
  config.image_token = 0;
  const auto model = std::make_shared<Qwen3Vl>(config, weights);
  pages->finish();
  const auto picture = at::rand({3, kSide, kSide}).to(device);
  return [pages, model, picture] { return (*model)(text_and_picture(), model->encode({picture})); };
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
  if (name == "qwen3-vl") return reader_of_pictures(weights);
  if (name == "qwen25-vl") return reader_of_windows(weights);
  if (name == "windows-1036") {
    const WindowVisionConfig config{.depth = kVisionBlocks, .whole = {kVisionBlocks - 1}};
    const auto tower = std::make_shared<WindowVisionTower>(weights, config);
    const auto picture = at::rand({3, kWindowsSide, kWindowsSide}).to(device);
    return [tower, picture] { return (*tower)(picture); };
  }
  if (name == "vision-1024") {
    const VisionConfig config{.depth = kVisionBlocks, .deepstack = {}};
    const auto tower = std::make_shared<VisionTower>(weights, config);
    const auto picture = at::rand({3, kSide, kSide}).to(device);
    return [tower, picture] { return (*tower)(picture).tokens_MC; };
  }
  if (name == "vae-encode-1024") return encoder_of({}, at::kBFloat16, device);
  if (name == "vae-encode-1024-float32") return encoder_of({}, at::kFloat, device);
  if (name == "flux2-encode-1024")
    return encoder_of(published_flux2("flux2-dev").vae, at::kBFloat16, device);
  if (name == "wan-encode-1024") return encoder_of(wan_vae_config(), at::kBFloat16, device);
  require(name == "vae-512" || name == "vae-1024", "the part should be ", kParts, ", it is '", name,
          "'");
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

int time_part(const std::string& name, int runs, const std::string& device,
              const std::string& folder) {
  const c10::InferenceMode no_autograd;
  const auto there = find_device(device);
  const bool is_whole = name == kWholeReader;
  require(is_whole == !folder.empty(), kWholeReader,
          " needs a folder for its pages, no other part takes one");
  const auto part = is_whole ? whole_reader(there, folder) : part_named(name, there);
  std::optional<KeepFreedMemory> keep;  // as in text encoders, but not in decoders
  if (name == "t5" || name.starts_with("qwen") || name == "vision-1024" || name == "windows-1036")
    keep.emplace();
  if (!is_whole) finish(part());  // the whole model takes a minute
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
  std::printf("%s", indented_json(json).c_str());
  return kSuccess;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  braid::take_huge_pages();
  try {
    braid::require(argc >= 2, "say which part: ", braid::kParts);
    const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : braid::kRuns;
    return braid::time_part(argv[1], runs, argc > 3 ? argv[3] : "cpu", argc > 4 ? argv[4] : "");
  } catch (...) {
    const auto failure = braid::current_failure();
    std::fprintf(stderr, "parts: %s\n", failure.sentence.c_str());
    return failure.exit_code;
  }
}
