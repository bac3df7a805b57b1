#include "pipeline/settings.h"

#include <algorithm>
#include <cmath>

#include <c10/util/accumulate.h>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace braid {
namespace {

constexpr int kMaxPixels = 1 << 14;  // a side
constexpr int kMaxSteps = 10'000, kMaxPictures = 1'000'000;

// Pictures larger than this are decoded in tiles unless told otherwise: the untiled decoder needs
// about 2.5 GB for each million pixels in float32.
constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;

template <class Number>
Number within(const char* name, Number value, Number low, Number high) {
  require(value >= low && value <= high, "the ", name, " should lie between ", low, " and ", high,
          ", it is ", value);
  return value;
}

double finite(const char* name, double value) {
  require(std::isfinite(value), "the ", name, " should be a finite number, it is ", value);
  return value;
}

void check_text(const char* name, const std::string& text) {
  require(unicode::is_valid_utf8(text), "the ", name, " should be UTF-8 text");
}

void check_texts(const Request& r) {
  for (const auto& prompt : r.prompts) check_text("prompt", prompt);
  for (const auto& prompt : r.prompts_2) check_text("second prompt", prompt);
  check_text("negative prompt", r.negative_prompt.value_or(""));
  check_text("second negative prompt", r.negative_prompt_2.value_or(""));
}

std::vector<Prompt> pair_prompts(const Request& r) {
  require(!r.prompts.empty(), "there is no prompt");
  require(r.prompts_2.empty() || r.prompts_2.size() == r.prompts.size(), "there are ",
          r.prompts.size(), " prompts but ", r.prompts_2.size(), " second prompts");
  std::vector<Prompt> pairs;
  for (std::size_t i = 0; i < r.prompts.size(); ++i)
    pairs.push_back({.text = r.prompts[i], .second = r.prompts_2.empty() ? "" : r.prompts_2[i]});
  return pairs;
}

std::optional<Prompt> negative_of(const Request& r, const Warn& warn) {
  if (!r.negative_prompt) {
    require(!r.negative_prompt_2, "a second negative prompt needs a negative prompt");
    if (r.true_cfg > 1) warn("true guidance needs a negative prompt: none is given, so it is off");
    return {};
  }
  if (!(r.true_cfg > 1)) {
    warn("the negative prompt is not used: that takes a true guidance scale above 1");
    return {};
  }
  return Prompt{.text = *r.negative_prompt, .second = r.negative_prompt_2.value_or("")};
}

int round_down(const char* name, int pixels, std::int64_t multiple, const Warn& warn) {
  const auto rounded = int(pixels / multiple * multiple);
  if (rounded != pixels)
    warn(text_of("the ", name, " ", pixels, " is rounded down to ", rounded, ", a multiple of ",
                 multiple));
  return rounded;
}

}  // namespace

int pictures_per_round(const Settings& settings, const Degrees& degrees) {
  const auto round = std::int64_t(settings.batch_size) * degrees.dp * degrees.layers;
  return int(std::min<std::int64_t>(round, kMaxPictures));
}

bool is_tiled(VaeTiling tiling, PictureSize size) {
  if (tiling != VaeTiling::kAuto) return tiling == VaeTiling::kOn;
  return std::int64_t(size.width) * size.height > kAutoTilingPixels;
}

Settings settle(const Request& r, const RequestLimits& limits, const Warn& warn_or_none) {
  const Warn warn = warn_or_none ? warn_or_none : [](const std::string&) {};
  const auto& d = limits.defaults;
  const auto multiple = limits.size_multiple;
  Settings s;
  check_texts(r);
  s.prompts = pair_prompts(r);
  s.true_cfg = finite("true guidance scale", r.true_cfg);
  s.guidance_rescale = within("guidance rescale", r.guidance_rescale, 0.0, 1.0);
  s.cfg_norm_cap = finite("norm cap of guidance", r.cfg_norm_cap);
  require(s.cfg_norm_cap >= 0, "the norm cap of guidance should be at least 0, it is ",
          s.cfg_norm_cap);
  s.negative = negative_of(r, warn);
  if (!s.negative && (s.guidance_rescale > 0 || s.cfg_norm_cap > 0))
    warn("guidance is not rescaled or capped: that takes true guidance, which does not run");
  const auto side = [&](const char* name, int pixels) {
    return round_down(name, within(name, pixels, multiple, kMaxPixels), multiple, warn);
  };
  s.width = side("width", r.width.value_or(d.width));
  s.height = side("height", r.height.value_or(d.height));
  s.steps = within("number of steps", r.steps.value_or(d.steps), 1, kMaxSteps);
  s.guidance = finite("guidance scale", r.guidance.value_or(d.guidance));
  s.max_sequence_length =
      within("maximum sequence length", r.max_sequence_length.value_or(d.max_sequence_length), 1,
             limits.max_text_tokens);
  s.seed = r.seed;
  s.num_images = within(
      "number of pictures", r.num_images, 1,
      std::max(1, kMaxPictures / int(std::min<std::size_t>(r.prompts.size(), kMaxPictures))));
  s.batch_size = within("batch size", r.batch_size, 1, kMaxPictures);
  s.vae_tiling = r.vae_tiling;
  return s;
}

LatentShapes latent_shapes(const Settings& settings, const Family& family) {
  const std::int64_t pictures = settings.num_pictures();
  LatentShapes shapes{
      .packed = {pictures, family.num_tokens(settings.size()), family.shape().in_width},
      .unpacked = family.latent_shape(settings.size())};
  shapes.unpacked.insert(shapes.unpacked.begin(), pictures);
  return shapes;
}

void check_latents(const Latents& latents, const LatentShapes& wanted) {
  require(latents.shape == wanted.packed || latents.shape == wanted.unpacked,
          "the initial latents should have the shape ", at::IntArrayRef(wanted.packed), " or ",
          at::IntArrayRef(wanted.unpacked), ", they have ", at::IntArrayRef(latents.shape));
  const auto count = std::int64_t(latents.values.size());
  require(count == c10::multiply_integers(latents.shape), "the initial latents should have ",
          c10::multiply_integers(latents.shape), " values, they have ", count);
}

}  // namespace braid
